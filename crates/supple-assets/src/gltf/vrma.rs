//! A simulated motion as a VRM animation (.vrma): the human bones of an avatar with their turns, and the place of the hips. It plays on any avatar.

use super::bake::{BakeSettings, Baked, Bounds, glb, push, push_floats};
use super::nodes::{NodePlaces, steps};
use crate::{Character, FileError, Note, Recording};
use glam::DQuat;
use serde_json::json;
use supple::Model;

impl Character {
    /// The motion of [`Character::imported`]'s model for any avatar. Only avatars (VRM) tell which of their nodes are which bones of a human.
    pub fn vrma(
        &self,
        model: &Model,
        recording: &Recording,
        name: &str,
        settings: &BakeSettings,
    ) -> Result<Baked, FileError> {
        let document = &*self.document;
        let told = document.human_bones();
        if !told.iter().flatten().any(|bone| bone == "hips") {
            let what = "it tells of no human bones, which a .vrma needs";
            return Err(FileError::new(
                "file/vrm",
                &document.path,
                what,
                "give a .vrm avatar, or write a .glb or .bvh",
            ));
        }
        // Nodes in the order of the scene; those above and below human bones alone matter, and the others do no harm.
        let mut index = vec![None; told.len()];
        for (k, &node) in document.order.iter().enumerate() {
            index[node] = Some(k);
        }
        let (mut root, mut binary) = (
            json!({ "asset": { "version": "2.0", "generator": format!("Supple {}", env!("CARGO_PKG_VERSION")) } }),
            Vec::new(),
        );
        // Lengths of a .vrma are metres.
        let scale = document.scale;
        for &node in &document.order {
            let (stretch, rotation, translation) = steps(&document.local[node]);
            let mut own = json!({ "name": document.names[node], "rotation": rotation.to_array(), "translation": (translation * scale).to_array() });
            if stretch.distance(glam::DVec3::ONE) > 1e-9 {
                own["scale"] = json!(stretch.to_array());
            }
            let children: Vec<usize> = document.root().nodes[node].children.iter().filter_map(|c| index[*c]).collect();
            if !children.is_empty() {
                own["children"] = json!(children);
            }
            push(&mut root, "nodes", own);
        }
        let tops: Vec<usize> =
            document.order.iter().filter(|&&node| document.parents[node].is_none()).filter_map(|&n| index[n]).collect();
        root["scene"] = 0.into();
        root["scenes"] = json!([{ "nodes": tops }]);
        let mut places = NodePlaces::new(self, model);
        let mut motions: Vec<(Vec<DQuat>, Vec<glam::DVec3>)> = vec![Default::default(); told.len()];
        let mut left_out = std::collections::BTreeSet::new();
        for poses in recording.poses.chunks_exact(model.bodies().len().max(1)) {
            places.place(poses, |node, rotation, translation| {
                motions[node].0.push(rotation);
                motions[node].1.push(translation * scale);
            });
        }
        let (mut channels, mut samplers) = (Vec::new(), Vec::new());
        let times: Vec<f32> = recording.times.iter().map(|t| *t as f32).collect();
        let input = push_floats(&mut root, &mut binary, &times, 1, None, Bounds::Told);
        let mut bones = json!({});
        for (node, bone) in told.iter().enumerate() {
            let (rotations, translations) = &mut motions[node];
            let (Some(bone), Some(k)) = (bone, index[node]) else {
                let still = steps(&document.local[node]).1;
                if rotations.iter().any(|q| q.angle_between(still) > settings.angle) {
                    left_out.insert(document.names[node].clone());
                }
                continue;
            };
            bones[bone] = json!({ "node": k });
            if rotations.is_empty() {
                continue;
            }
            super::bake::keep_sign(rotations);
            let mut add = |path: &str, values: Vec<f32>, width: usize| {
                let output = push_floats(&mut root, &mut binary, &values, width, None, Bounds::Untold);
                channels.push(json!({ "sampler": samplers.len(), "target": { "node": k, "path": path } }));
                samplers.push(json!({ "input": input, "output": output, "interpolation": "LINEAR" }));
            };
            add("rotation", rotations.iter().flat_map(|q| q.as_quat().normalize().to_array()).collect(), 4);
            if bone == "hips" {
                add("translation", translations.iter().flat_map(|t| t.as_vec3().to_array()).collect(), 3);
            }
        }
        root["animations"] = json!([{ "name": name, "channels": channels, "samplers": samplers }]);
        root["extensionsUsed"] = json!(["VRMC_vrm_animation"]);
        root["extensions"] =
            json!({ "VRMC_vrm_animation": { "specVersion": "1.0", "humanoid": { "humanBones": bones } } });
        root["buffers"] = json!([{ "byteLength": binary.len() }]);
        let mut notes = Vec::new();
        if !left_out.is_empty() {
            let names: Vec<&str> = left_out.iter().map(String::as_str).collect();
            let text = format!("these are no human bones, and a .vrma has no others: {}", names.join(", "));
            notes.push(Note { code: "export/left-out", part: "nodes".into(), text });
        }
        Ok(Baked { bytes: glb(&root, binary), notes })
    }
}
