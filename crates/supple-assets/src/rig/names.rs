//! What a bone is, by its name: the naming schemes of Mixamo, Unreal, Blender (Rigify), 3ds Max Biped, VRM and WebXR, and plain English.

/// The part of a body that a bone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Hips, or the root of the skeleton.
    Pelvis,
    /// Any part of the trunk above the pelvis.
    Spine,
    /// Collar bone.
    Clavicle,
    /// Neck.
    Neck,
    /// Head.
    Head,
    /// Shoulder to elbow.
    UpperArm,
    /// Elbow to wrist.
    Forearm,
    /// Wrist, palm.
    Hand,
    /// The bone of a finger within the palm.
    Metacarpal,
    /// The first bone of a finger beyond the palm.
    FingerBase,
    /// The other bones of a finger.
    Finger,
    /// Hip to knee.
    Thigh,
    /// Knee to ankle.
    Calf,
    /// Ankle to the ball of the foot.
    Foot,
    /// Toes.
    Toe,
    /// What hangs and sways: tail, ear, hair, cloth, wing.
    Tail,
    /// A name that says nothing.
    Unknown,
}

/// The side of the body that a bone is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
    Middle,
}

/// The words of a name in small letters: split at signs, digits, and where small letters meet capitals.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut last_small) = (String::new(), false);
    for c in name.chars().chain(std::iter::once(' ')) {
        let begins = !c.is_alphabetic() || (c.is_uppercase() && last_small);
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
        last_small = c.is_lowercase();
    }
    words
}

/// The side that a name tells.
pub(crate) fn side(name: &str) -> Side {
    let words = words(name);
    let tells = |letter: &str, word: &str| {
        words.iter().any(|w| w == letter || w == word || (w.starts_with(word) && w.len() > word.len()))
    };
    match (tells("l", "left"), tells("r", "right")) {
        (true, false) => Side::Left,
        (false, true) => Side::Right,
        _ => Side::Middle,
    }
}

const FINGERS: [&str; 7] = ["thumb", "index", "middle", "ring", "pinky", "little", "finger"];

/// The finger that a name tells.
pub(crate) fn finger(name: &str) -> Option<&'static str> {
    let words = words(name);
    FINGERS.into_iter().find(|finger| words.iter().any(|word| word == finger))
}

/// The class of a bone by its name and that of the bone it hangs on. Names such as `leg_1`, `leg_2` count along the limb.
pub(crate) fn class(name: &str, parent: Option<Class>) -> Class {
    let words = words(name);
    let text = words.concat();
    let word = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let part = |list: &[&str]| list.iter().any(|p| text.contains(p));
    let in_hand = matches!(
        parent,
        Some(Class::Hand | Class::Forearm | Class::Metacarpal | Class::FingerBase | Class::Finger | Class::Unknown)
    );
    if part(&["metacarpal"]) {
        return Class::Metacarpal;
    }
    if word(&FINGERS) || part(&["thumb", "finger"]) || (part(&FINGERS) && in_hand) {
        return match parent {
            Some(Class::FingerBase | Class::Finger) => Class::Finger,
            _ => Class::FingerBase,
        };
    }
    if part(&["tail", "hair", "cloth", "skirt", "wing", "cape", "ponytail"]) || word(&["ear", "ears"]) {
        return Class::Tail;
    }
    if part(&["toe"]) || word(&["ball"]) {
        return Class::Toe;
    }
    if part(&["foot", "ankle"]) {
        return Class::Foot;
    }
    if part(&["calf", "shin", "lowerleg", "lowleg", "knee"]) {
        return Class::Calf;
    }
    if part(&["thigh", "upleg", "upperleg", "femur"]) {
        return Class::Thigh;
    }
    if part(&["leg"]) {
        return match parent {
            Some(Class::Thigh) => Class::Calf,
            Some(Class::Calf) => Class::Foot,
            Some(Class::Foot | Class::Toe) => Class::Toe,
            _ => Class::Thigh,
        };
    }
    if part(&["clavicle", "collar", "shoulder"]) {
        return Class::Clavicle;
    }
    if part(&["forearm", "lowerarm", "lowarm", "elbow"]) {
        return Class::Forearm;
    }
    if part(&["upperarm", "uparm", "humerus"]) {
        return Class::UpperArm;
    }
    if word(&["hand", "wrist", "palm"]) || part(&["hand"]) {
        return Class::Hand;
    }
    // An armature is no arm.
    if word(&["arm"]) || (part(&["arm"]) && !part(&["armature", "armor", "armour"])) {
        return match parent {
            Some(Class::UpperArm) => Class::Forearm,
            Some(Class::Forearm | Class::Hand) => Class::Hand,
            _ => Class::UpperArm,
        };
    }
    if part(&["head", "skull"]) {
        return Class::Head;
    }
    if part(&["neck"]) {
        return if parent == Some(Class::Neck) { Class::Head } else { Class::Neck };
    }
    if part(&["pelvis"]) || word(&["hip", "hips"]) {
        return Class::Pelvis;
    }
    if part(&["spine", "torso", "chest", "abdomen", "waist", "ribcage"]) {
        return if parent.is_none() { Class::Pelvis } else { Class::Spine };
    }
    Class::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_schemes_are_known() {
        use Class::*;
        // Name, class of the bone above, class.
        let names = [
            ("mixamorig:Hips", None, Pelvis),
            ("mixamorig:Spine2", Some(Spine), Spine),
            ("mixamorig:LeftShoulder", Some(Spine), Clavicle),
            ("mixamorig:LeftArm", Some(Clavicle), UpperArm),
            ("mixamorig:LeftForeArm", Some(UpperArm), Forearm),
            ("mixamorig:LeftHand", Some(Forearm), Hand),
            ("mixamorig:LeftHandThumb1", Some(Hand), FingerBase),
            ("mixamorig:LeftHandIndex2", Some(FingerBase), Finger),
            ("mixamorig:LeftUpLeg", Some(Pelvis), Thigh),
            ("mixamorig:LeftLeg", Some(Thigh), Calf),
            ("mixamorig:LeftToeBase", Some(Foot), Toe),
            ("spine_02", Some(Spine), Spine),
            ("lowerarm.l", Some(UpperArm), Forearm),
            ("ring_03.r", Some(Finger), Finger),
            ("ball.l", Some(Foot), Toe),
            ("Bip01 L Calf", Some(Thigh), Calf),
            ("Bip01 R UpperArm", Some(Clavicle), UpperArm),
            ("J_Bip_L_LowerLeg", Some(Thigh), Calf),
            ("DEF-forearm.L", Some(UpperArm), Forearm),
            ("index-finger-metacarpal", Some(Hand), Metacarpal),
            ("index-finger-phalanx-proximal", Some(Metacarpal), FingerBase),
            ("index-finger-phalanx-distal", Some(FingerBase), Finger),
            ("leg_joint_R_2", Some(Thigh), Calf),
            ("leg_joint_R_3", Some(Calf), Foot),
            ("Skeleton_arm_joint_R__2_", Some(UpperArm), Forearm),
            ("neck_joint_2", Some(Neck), Head),
            ("torso_joint_1", None, Pelvis),
            ("r-leg", Some(Thigh), Calf),
            ("Armature", None, Unknown),
            ("Bone.001", None, Unknown),
        ];
        for (name, parent, wanted) in names {
            assert_eq!(class(name, parent), wanted, "{name}");
        }
    }

    #[test]
    fn sides_are_told() {
        for name in ["thigh.l", "LeftUpLeg", "Bip01 L Calf", "l-arm", "leg_joint_L_1", "J_Bip_L_Hand"] {
            assert_eq!(side(name), Side::Left, "{name}");
        }
        for name in ["thigh.r", "mixamorig:RightHand", "foot_R"] {
            assert_eq!(side(name), Side::Right, "{name}");
        }
        for name in ["head", "spine_01", "lower"] {
            assert_eq!(side(name), Side::Middle, "{name}");
        }
    }
}
