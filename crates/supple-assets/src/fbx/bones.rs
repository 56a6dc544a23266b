//! A skeleton without a mesh, as modelling tools draw it: a spindle along each bone, carried by it.

use super::{Writer, push};
use crate::FileError;
use crate::rig::{Class, class};
use glam::{DAffine3, DQuat, DVec3};
use serde_json::json;
use ufbx::SceneRoot;

/// Corners around a spindle, and its rings: places along it, and radii.
const SIDES: usize = 6;
const RINGS: [(f64, f64); 4] = [(0.0, 0.5), (0.2, 1.0), (0.8, 0.8), (1.0, 0.4)];
/// Radius of a bone as a part of its length, and the least and most of it as parts of the skeleton.
const THICKNESS: (f64, f64, f64) = (0.16, 0.004, 0.05);
/// A head that no bone goes on from is drawn this long \[of the largest extent of the skeleton\]: a person without one is none.
const HEAD: f64 = 0.12;

impl Writer<'_> {
    /// Draws the bones of a file that has no mesh. `world`: by node.
    pub(super) fn bones(&mut self, scene: &SceneRoot, world: &[DAffine3]) -> Result<(), FileError> {
        let bones: Vec<usize> = (0..scene.nodes.len()).filter(|&k| scene.nodes[k].bone.is_some()).collect();
        let at = |k: usize| world[k].translation;
        let parent = |bone: usize| {
            let parent = scene.nodes[bone].parent.as_ref().map(|parent| parent.element.typed_id as usize);
            parent.filter(|p| scene.nodes.get(*p).is_some_and(|n| n.bone.is_some()))
        };
        // The bone that carries a spindle, and where that ends.
        let mut spindles: Vec<(usize, DVec3)> =
            bones.iter().filter_map(|&bone| Some((parent(bone)?, at(bone)))).collect();
        let low = bones.iter().map(|&k| at(k)).fold(DVec3::INFINITY, DVec3::min);
        let high = bones.iter().map(|&k| at(k)).fold(DVec3::NEG_INFINITY, DVec3::max);
        let size = (high - low).length();
        if spindles.is_empty() || !(size > 1e-6 && size.is_finite()) {
            return Ok(());
        }
        let mut goes_on = vec![false; scene.nodes.len()];
        bones.iter().filter_map(|bone| parent(*bone)).for_each(|above| goes_on[above] = true);
        let named = |bone: usize| class(&scene.nodes[bone].element.name, None) == Class::Head;
        // The end of a head that has one is called so, too.
        let is_head = |bone: usize| named(bone) && !parent(bone).is_some_and(named);
        for &bone in bones.iter().filter(|&&bone| is_head(bone) && !goes_on[bone]) {
            let on = parent(bone).and_then(|above| (at(bone) - at(above)).try_normalize());
            spindles.extend(on.map(|on| (bone, at(bone) + on * (HEAD * (high - low).max_element()))));
        }
        self.spend(spindles.len() * 300)?;
        let (mut positions, mut normals, mut joints, mut triangles): (Vec<f32>, Vec<f32>, Vec<u8>, Vec<[u32; 3]>) =
            Default::default();
        for &(bone, end) in &spindles {
            let along = end - at(bone);
            let length = along.length();
            if length < 1e-4 * size {
                continue;
            }
            let (share, least, most) = THICKNESS;
            let radius = (share * length).clamp(least * size, most * size);
            let turn = DQuat::from_rotation_arc(DVec3::Y, along / length);
            let first = (positions.len() / 3) as u32;
            let joint = bones.iter().position(|b| *b == bone).unwrap_or(0) as u16;
            let mut add = |place: DVec3, normal: DVec3| {
                positions.extend(place.as_vec3().to_array());
                normals.extend(normal.as_vec3().to_array());
                joints.extend([joint, 0, 0, 0].iter().flat_map(|j| j.to_le_bytes()));
            };
            for (part, wide) in RINGS {
                for side in 0..SIDES {
                    let angle = std::f64::consts::TAU * side as f64 / SIDES as f64;
                    let out = turn * DVec3::new(angle.cos(), 0.0, angle.sin());
                    add(at(bone) + along * part + out * (radius * wide), out);
                }
            }
            add(at(bone), -along / length);
            add(end, along / length);
            let (sides, rings) = (SIDES as u32, RINGS.len() as u32);
            for ring in 0..rings - 1 {
                for side in 0..sides {
                    let [a, b] = [side, (side + 1) % sides].map(|s| first + ring * sides + s);
                    triangles.extend([[a, a + sides, b], [b, a + sides, b + sides]]);
                }
            }
            let end = first + rings * sides;
            for side in 0..sides {
                let [a, b] = [side, (side + 1) % sides].map(|s| first + s);
                triangles.push([end, a, b]);
                let top = (rings - 1) * sides;
                triangles.push([end + 1, b + top, a + top]);
            }
        }
        let count = positions.len() / 3;
        let position = self.floats(&positions, 3, Some(34962), true);
        let normal = self.floats(&normals, 3, Some(34962), false);
        let weights = self.floats(&[1.0, 0.0, 0.0, 0.0].repeat(count), 4, Some(34962), false);
        let view = crate::gltf::push_view(&mut self.root, &mut self.binary, &joints, Some(34962));
        let joints = push(
            &mut self.root,
            "accessors",
            json!({ "bufferView": view, "componentType": 5123, "count": count, "type": "VEC4" }),
        );
        let indices = crate::gltf::push_indices(&mut self.root, &mut self.binary, &triangles);
        let binds: Vec<u8> = bones
            .iter()
            .flat_map(|&k| glam::DMat4::from(world[k].inverse()).as_mat4().to_cols_array())
            .flat_map(f32::to_le_bytes)
            .collect();
        let view = crate::gltf::push_view(&mut self.root, &mut self.binary, &binds, None);
        let matrices = push(
            &mut self.root,
            "accessors",
            json!({ "bufferView": view, "componentType": 5126, "count": bones.len(), "type": "MAT4" }),
        );
        let nodes: Vec<usize> = bones.iter().filter_map(|&k| self.index(k)).collect();
        let skin = push(&mut self.root, "skins", json!({ "joints": nodes, "inverseBindMatrices": matrices }));
        let material = json!({ "name": "bones", "pbrMetallicRoughness": { "baseColorFactor": [0.72, 0.66, 0.56, 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.7 } });
        let material = push(&mut self.root, "materials", material);
        let attributes = json!({ "POSITION": position, "NORMAL": normal, "JOINTS_0": joints, "WEIGHTS_0": weights });
        let primitive = json!({ "attributes": attributes, "indices": indices, "material": material });
        let mesh = push(&mut self.root, "meshes", json!({ "name": "bones", "primitives": [primitive] }));
        let node = push(&mut self.root, "nodes", json!({ "name": "bones", "mesh": mesh, "skin": skin }));
        push(&mut self.root["scenes"][0], "nodes", node.into());
        self.note("import/bones", "scene", "it has bones and no mesh: the bones are drawn");
        Ok(())
    }
}
