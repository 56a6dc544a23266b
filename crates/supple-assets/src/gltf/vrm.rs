//! The humanoid map of a VRM avatar, 1.0 (`VRMC_vrm`) and 0.x (`VRM`): which node is which part of the body.

use super::document::Document;
use crate::Class;
use serde_json::Value;

impl Document {
    /// By node: what the file says that it is.
    pub(crate) fn humanoid(&self) -> Vec<Option<Class>> {
        let mut told = vec![None; self.parents.len()];
        let mut tell = |bone: &str, node: Option<&Value>| {
            let node = node.and_then(Value::as_u64).and_then(|n| told.get_mut(n as usize));
            if let (Some(told), Some(class)) = (node, class(bone)) {
                *told = Some(class);
            }
        };
        let extensions = &self.root().extensions;
        // 1.0: an object by bone; 0.x: a list.
        match extensions.pointer("/VRMC_vrm/humanoid/humanBones") {
            Some(Value::Object(bones)) => bones.iter().for_each(|(bone, value)| tell(bone, value.get("node"))),
            _ => {
                let bones = extensions.pointer("/VRM/humanoid/humanBones").and_then(Value::as_array);
                for value in bones.into_iter().flatten() {
                    tell(value["bone"].as_str().unwrap_or_default(), value.get("node"));
                }
            }
        }
        told
    }
}

/// The class of a human bone by its name in the format; jaw and eyes are parts of the head.
fn class(bone: &str) -> Option<Class> {
    let part = bone.strip_prefix("left").or(bone.strip_prefix("right")).unwrap_or(bone);
    Some(match part {
        "hips" => Class::Pelvis,
        "spine" | "chest" | "upperChest" => Class::Spine,
        "neck" => Class::Neck,
        "head" => Class::Head,
        "Shoulder" => Class::Clavicle,
        "UpperArm" => Class::UpperArm,
        "LowerArm" => Class::Forearm,
        "Hand" => Class::Hand,
        "UpperLeg" => Class::Thigh,
        "LowerLeg" => Class::Calf,
        "Foot" => Class::Foot,
        "Toes" => Class::Toe,
        "ThumbMetacarpal" | "IndexProximal" | "MiddleProximal" | "RingProximal" | "LittleProximal" => Class::FingerBase,
        _ if part.ends_with("Proximal") || part.ends_with("Intermediate") || part.ends_with("Distal") => Class::Finger,
        _ => return None,
    })
}
