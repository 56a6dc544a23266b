//! What a bone is, by its name: the naming schemes of Mixamo, Unreal, Blender (Rigify), 3ds Max Biped, VRM, MikuMikuDance and WebXR, and plain words of some
//! languages. Names are hints: what they leave open is told by shape and order (`plan.rs`).

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

/// The words of a name in small letters: split at signs, digits, where small letters meet capitals, and before the last of several capitals (`LArm`).
fn words(name: &str) -> Vec<String> {
    let letters = |pieces: Vec<String>| pieces.into_iter().filter(|w| w.chars().all(char::is_alphabetic)).collect();
    letters(pieces(name))
}

/// The words of a name, and what is between them.
fn pieces(name: &str) -> Vec<String> {
    let all: Vec<char> = name.chars().collect();
    let mut pieces: Vec<String> = Vec::new();
    for (k, c) in all.iter().enumerate() {
        let before = k.checked_sub(1).map(|k| all[k]);
        let begins = before.is_none_or(|b| {
            let rises = c.is_uppercase() && b.is_lowercase();
            let last_capital = c.is_uppercase() && b.is_uppercase() && all.get(k + 1).is_some_and(|n| n.is_lowercase());
            b.is_alphabetic() != c.is_alphabetic() || rises || last_capital
        });
        if begins {
            pieces.push(String::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.extend(c.to_lowercase());
        }
    }
    pieces
}

/// Words for left and right.
const LEFT: [&str; 5] = ["left", "links", "izquierd", "gauche", "左"];
const RIGHT: [&str; 5] = ["right", "rechts", "derech", "droit", "右"];

/// The side that a word tells.
fn side_of(word: &str) -> Side {
    let begins = |list: &[&str]| list.iter().any(|side| word.starts_with(side));
    match word {
        "l" => Side::Left,
        "r" => Side::Right,
        _ if begins(&LEFT) => Side::Left,
        _ if begins(&RIGHT) => Side::Right,
        _ => Side::Middle,
    }
}

/// A name without what tells its side: the same for twins.
pub(crate) fn without_side(name: &str) -> String {
    let sideless = |piece: String| match side_of(&piece) {
        Side::Middle => piece,
        _ => LEFT.iter().chain(&RIGHT).fold(piece, |p, side| p.replace(side, "*")).replace(['l', 'r'], "*"),
    };
    pieces(name).into_iter().map(sideless).collect()
}

/// Bones that help a limb to twist, or to keep its form.
pub(crate) fn is_roll(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|w| ["twist", "roll", "helper", "corrective", "muscle", "bend", "share"].contains(&w.as_str()))
}

/// What is carried and worn.
pub(crate) fn is_prop(name: &str) -> bool {
    const PROPS: [&str; 16] = [
        "slot",
        "weapon",
        "sword",
        "shield",
        "prop",
        "socket",
        "attach",
        "attachment",
        "mount",
        "gun",
        "knife",
        "bow",
        "staff",
        "axe",
        "holster",
        "item",
    ];
    words(name).iter().any(|w| PROPS.contains(&w.as_str()) || w.ends_with("slot"))
}

/// The last bone of a chain, that only tells where it ends.
pub(crate) fn is_end(name: &str) -> bool {
    words(name).iter().any(|w| ["end", "nub", "tip", "top", "effector", "leaf"].contains(&w.as_str()))
}

/// The side that a name tells.
pub(crate) fn side(name: &str) -> Side {
    let words = words(name);
    let tells = |side: Side| words.iter().any(|w| side_of(w) == side);
    match (tells(Side::Left), tells(Side::Right)) {
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
    if part(&["tail", "hair", "cloth", "skirt", "wing", "cape", "antenna", "尻尾", "髪", "スカート"])
        || word(&["ear", "ears"])
    {
        return Class::Tail;
    }
    if part(&["toe", "zeh", "orteil", "つま先"]) || word(&["ball"]) {
        return Class::Toe;
    }
    if part(&["foot", "ankle", "paw", "hoof", "fuss", "fuß", "knöchel", "足首"]) || word(&["pie", "pied", "feet"]) {
        return Class::Foot;
    }
    if part(&[
        "calf",
        "shin",
        "lowerleg",
        "lowleg",
        "legdown",
        "leglower",
        "knee",
        "unterschenkel",
        "knie",
        "rodilla",
        "pantorrilla",
        "genou",
        "mollet",
        "tibia",
        "ひざ",
    ]) {
        return Class::Calf;
    }
    if part(&["thigh", "upleg", "upperleg", "legup", "femur", "oberschenkel", "muslo", "cuisse"]) {
        return Class::Thigh;
    }
    if part(&["leg", "bein", "pierna", "jambe", "左足", "右足", "足左", "足右"]) {
        return match parent {
            Some(Class::Thigh) => Class::Calf,
            Some(Class::Calf) => Class::Foot,
            Some(Class::Foot | Class::Toe) => Class::Toe,
            _ => Class::Thigh,
        };
    }
    if part(&["clavicle", "collar", "shoulder", "schulter", "hombro", "épaule", "epaule", "肩"]) {
        return Class::Clavicle;
    }
    if part(&[
        "forearm",
        "lowerarm",
        "lowarm",
        "armlower",
        "elbow",
        "unterarm",
        "ellbogen",
        "antebrazo",
        "codo",
        "avantbras",
        "coude",
        "ひじ",
    ]) {
        return Class::Forearm;
    }
    if part(&["upperarm", "uparm", "armupper", "humerus", "oberarm"]) {
        return Class::UpperArm;
    }
    if word(&["hand", "wrist", "palm", "mano", "main"]) || part(&["hand", "手首"]) {
        return Class::Hand;
    }
    // An armature is no arm.
    if word(&["arm", "brazo", "bras"]) || part(&["腕"]) || (part(&["arm"]) && !part(&["armature", "armor", "armour"]))
    {
        return match parent {
            Some(Class::UpperArm) => Class::Forearm,
            Some(Class::Forearm | Class::Hand) => Class::Hand,
            _ => Class::UpperArm,
        };
    }
    if part(&["head", "skull", "kopf", "cabeza", "tête"]) || word(&["tete", "頭"]) {
        return Class::Head;
    }
    if part(&["neck", "cuello", "首"]) || word(&["hals", "cou"]) {
        return if parent == Some(Class::Neck) { Class::Head } else { Class::Neck };
    }
    if part(&["pelvis", "hüfte", "huefte", "becken", "cadera", "bassin", "下半身"]) || word(&["hip", "hips"]) {
        return Class::Pelvis;
    }
    if part(&[
        "spine",
        "torso",
        "chest",
        "abdomen",
        "waist",
        "ribcage",
        "wirbel",
        "brust",
        "columna",
        "pecho",
        "colonne",
        "上半身",
    ]) {
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
            ("左ひざ", Some(Thigh), Calf),
            ("右足首", Some(Calf), Foot),
            ("Oberschenkel.L", Some(Pelvis), Thigh),
            ("antebrazo_izquierdo", Some(UpperArm), Forearm),
            ("RThigh", Some(Pelvis), Thigh),
            ("Armature", None, Unknown),
            ("Bone.001", None, Unknown),
        ];
        for (name, parent, wanted) in names {
            assert_eq!(class(name, parent), wanted, "{name}");
        }
    }

    #[test]
    fn twins_have_one_name_without_their_side() {
        for (a, b) in
            [("LeftArm2", "RightArm2"), ("hand.l", "hand.r"), ("l-leg", "r-leg"), ("左足", "右足"), ("LArm", "RArm")]
        {
            assert_eq!(without_side(a), without_side(b));
        }
        assert_ne!(without_side("finger_01.l"), without_side("finger_02.r"));
    }

    #[test]
    fn sides_are_told() {
        for name in [
            "thigh.l",
            "LeftUpLeg",
            "Bip01 L Calf",
            "l-arm",
            "leg_joint_L_1",
            "J_Bip_L_Hand",
            "LArm",
            "左ひざ",
            "brazo_izquierdo",
        ] {
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
