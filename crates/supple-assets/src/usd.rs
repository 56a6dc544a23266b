//! A simulated motion as USD text (.usda): the nodes of a character as joints of a skeleton (UsdSkel), its meshes with their weights and plain materials, the
//! motion as a SkelAnimation. In the unit of the character's file, Y up.
//!
//! USD writes points and matrices for row vectors: a matrix is written by its columns. A mesh goes to `Σ wⱼ Sⱼ Bⱼ⁻¹ G p` with `Sⱼ` the joint, `Bⱼ` its bind transform and
//! `G` that of the geometry; glTF says `Σ wⱼ Sⱼ Iⱼ p`, so `Bⱼ = Iⱼ⁻¹`. Skins that bind a joint in different places have a skeleton each.

use crate::gltf::{Document, NodePlaces, SkinnedMesh, node_steps};
use crate::{Character, FileError, Note, Recording};
use glam::{DAffine3, DQuat, DVec3};
use std::collections::BTreeSet;
use std::fmt::Write;
use supple::Model;

/// Time codes a second: times of frames are told in these, and need not be whole.
const CODES: f64 = 60.0;

/// The text of a .usda file, and what it could not keep.
#[derive(Debug)]
pub struct Usda {
    /// All of it.
    pub text: String,
    /// What is not in it.
    pub notes: Vec<Note>,
}

impl Character {
    /// The character with a motion of [`Character::imported`]'s model, as USD.
    pub fn usda(&self, model: &Model, recording: &Recording, name: &str) -> Result<Usda, FileError> {
        let document = &*self.document;
        let mut notes = Vec::new();
        let mut note = |code, part: &str, text: &str| notes.push(Note { code, part: part.into(), text: text.into() });
        if model.skin().is_some() {
            note("export/left-out", "skin", "how soft skin gives way is not written: the mesh follows its bones");
        }
        if !document.root().images.is_empty() {
            note("export/left-out", "textures", "textures are not written: materials have their colours alone");
        }
        let names = identifiers(document.order.iter().map(|&node| document.names[node].as_str()));
        let mut joint_of = vec![0; document.parents.len()];
        let mut paths: Vec<String> = Vec::new();
        for (k, &node) in document.order.iter().enumerate() {
            joint_of[node] = k;
            let above = document.parents[node].map(|parent| paths[joint_of[parent]].as_str());
            paths.push(above.map_or(names[k].clone(), |above| format!("{above}/{}", names[k])));
        }
        let joints = format!("[{}]", paths.iter().map(|path| format!("\"{path}\"")).collect::<Vec<_>>().join(", "));
        let out = Writer { character: self, document, joints, joint_of, text: String::new() };
        let text = out.write(model, recording, name)?;
        Ok(Usda { text, notes })
    }
}

/// Names that USD takes, each different.
fn identifiers<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut used = BTreeSet::new();
    names
        .map(|name| {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let mut own: String = name.chars().map(plain).collect();
            if !own.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                own.insert(0, '_');
            }
            let mut told = own.clone();
            for k in 1.. {
                if used.insert(told.clone()) {
                    break;
                }
                told = format!("{own}_{k}");
            }
            told
        })
        .collect()
}

struct Writer<'c> {
    character: &'c Character,
    document: &'c Document,
    /// The list of all joints.
    joints: String,
    /// By node: which joint it is.
    joint_of: Vec<usize>,
    text: String,
}

fn row(v: DVec3) -> String {
    let [x, y, z] = v.as_vec3().to_array();
    format!("({x}, {y}, {z})")
}

fn matrix(m: &DAffine3) -> String {
    let line = |v: DVec3, w: u8| format!("({}, {}, {}, {w})", v.x, v.y, v.z);
    let m3 = m.matrix3;
    format!("({}, {}, {}, {})", line(m3.x_axis, 0), line(m3.y_axis, 0), line(m3.z_axis, 0), line(m.translation, 1))
}

fn list<T>(items: impl IntoIterator<Item = T>, text: impl Fn(T) -> String) -> String {
    format!("[{}]", items.into_iter().map(text).collect::<Vec<_>>().join(", "))
}

impl Writer<'_> {
    /// Where nodes are at rest, in the unit of the file.
    fn rest(&self, node: usize) -> DAffine3 {
        self.document.world_from_file().inverse() * self.document.world[node]
    }

    fn write(mut self, model: &Model, recording: &Recording, name: &str) -> Result<String, FileError> {
        let end = recording.times.last().copied().unwrap_or(0.0) * CODES;
        let start = recording.times.first().copied().unwrap_or(0.0) * CODES;
        let _ = write!(
            self.text,
            "#usda 1.0\n(\n    defaultPrim = \"Character\"\n    doc = \"Supple {}: {}\"\n    startTimeCode = {start}\n    endTimeCode = {end}\n    \
             timeCodesPerSecond = {CODES}\n    framesPerSecond = {CODES}\n    metersPerUnit = {}\n    upAxis = \"Y\"\n)\n\n\
             def SkelRoot \"Character\" (\n    prepend apiSchemas = [\"SkelBindingAPI\"]\n)\n{{\n",
            env!("CARGO_PKG_VERSION"),
            name.replace(['"', '\\', '\n'], " "),
            self.document.scale,
        );
        self.animation(model, recording);
        self.materials();
        let mut skeletons: Vec<Option<usize>> = Vec::new();
        let meshes: Vec<&SkinnedMesh> = self.character.meshes.iter().collect();
        let names = identifiers(meshes.iter().map(|mesh| mesh.name.as_str()));
        for (mesh, name) in meshes.into_iter().zip(names) {
            let skin = self.document.root().nodes[mesh.node].skin;
            let skeleton = match skeletons.iter().position(|known| *known == skin) {
                Some(known) => known,
                None => {
                    skeletons.push(skin);
                    self.skeleton(skeletons.len() - 1, skin)?;
                    skeletons.len() - 1
                }
            };
            self.mesh(mesh, &format!("Mesh_{name}"), skeleton, skin)?;
        }
        self.text.push_str("}\n");
        Ok(self.text)
    }

    fn animation(&mut self, model: &Model, recording: &Recording) {
        let order = &self.document.order;
        let rest: Vec<(DVec3, DQuat, DVec3)> =
            order.iter().map(|&node| node_steps(&self.document.local[node])).collect();
        let mut places = NodePlaces::new(self.character, model);
        let (mut turns, mut moves) = (String::new(), String::new());
        let mut last: Vec<DQuat> = rest.iter().map(|step| step.1).collect();
        for (time, poses) in recording.times.iter().zip(recording.poses.chunks_exact(model.bodies().len().max(1))) {
            let mut frame = rest.clone();
            places.place(poses, |node, rotation, translation| {
                let step = &mut frame[self.joint_of[node]];
                (step.1, step.2) = (rotation, translation);
            });
            for (step, last) in frame.iter_mut().zip(&mut last) {
                if step.1.dot(*last) < 0.0 {
                    step.1 = -step.1;
                }
                *last = step.1;
            }
            let code = time * CODES;
            let turn = |step: &(DVec3, DQuat, DVec3)| {
                let q = step.1.as_quat().normalize();
                format!("({}, {}, {}, {})", q.w, q.x, q.y, q.z)
            };
            let _ = writeln!(turns, "            {code}: {},", list(&frame, turn));
            let _ = writeln!(moves, "            {code}: {},", list(&frame, |step| row(step.2)));
        }
        let _ = write!(
            self.text,
            "    def SkelAnimation \"Motion\"\n    {{\n        uniform token[] joints = {}\n        float3[] translations.timeSamples = {{\n{moves}        }}\n        \
             quatf[] rotations.timeSamples = {{\n{turns}        }}\n        half3[] scales = {}\n    }}\n\n",
            self.joints,
            list(&rest, |step| row(step.0)),
        );
    }

    fn materials(&mut self) {
        let materials = &self.document.root().materials;
        if materials.is_empty() {
            return;
        }
        self.text.push_str("    def Scope \"Materials\"\n    {\n");
        for (k, material) in materials.iter().enumerate() {
            let surface = material.pbr_metallic_roughness.as_ref();
            let colour = surface.and_then(|s| s.base_color_factor).unwrap_or([1.0; 4]);
            let [r, g, b, a] = colour.map(|c| if c.is_finite() { c.clamp(0.0, 1.0) } else { 1.0 });
            let _ = write!(
                self.text,
                "        def Material \"Material_{k}\"\n        {{\n            token outputs:surface.connect = </Character/Materials/Material_{k}/Surface.outputs:surface>\n\n            \
                 def Shader \"Surface\"\n            {{\n                uniform token info:id = \"UsdPreviewSurface\"\n                color3f inputs:diffuseColor = ({r}, {g}, {b})\n                \
                 float inputs:opacity = {a}\n                float inputs:roughness = 0.7\n                token outputs:surface\n            }}\n        }}\n"
            );
        }
        self.text.push_str("    }\n\n");
    }

    /// The skeleton that the meshes of a skin hang on, or those that hang on single nodes.
    fn skeleton(&mut self, number: usize, skin: Option<usize>) -> Result<(), FileError> {
        let mut binds: Vec<DAffine3> = self.document.order.iter().map(|&node| self.rest(node)).collect();
        if let Some(skin) = skin {
            for (node, inverse) in self.document.binds(&self.document.reader(), skin)? {
                let bind = inverse.inverse();
                if !bind.is_finite() {
                    let what = "a bone is bound by a matrix that flattens, which USD cannot say";
                    let remedy = "bind the mesh again, or write a .glb";
                    return Err(FileError::new("file/skin", &self.document.path, what, remedy)
                        .at(self.document.names[node].clone()));
                }
                binds[self.joint_of[node]] = bind;
            }
        }
        let rests = list(&self.document.order, |&node| matrix(&self.document.local[node].matrix()));
        let _ = write!(
            self.text,
            "    def Skeleton \"Skeleton_{number}\" (\n        prepend apiSchemas = [\"SkelBindingAPI\"]\n    )\n    {{\n        uniform token[] joints = {}\n        \
             uniform matrix4d[] bindTransforms = {}\n        uniform matrix4d[] restTransforms = {rests}\n        rel skel:animationSource = </Character/Motion>\n    }}\n\n",
            self.joints,
            list(&binds, matrix),
        );
        Ok(())
    }

    fn mesh(&mut self, mesh: &SkinnedMesh, name: &str, skeleton: usize, skin: Option<usize>) -> Result<(), FileError> {
        let (document, reader) = (self.document, self.document.reader());
        let root = document.root();
        let Some(primitive) = root.nodes[mesh.node].mesh.and_then(|m| root.meshes[m].primitives.get(mesh.primitive))
        else {
            return Ok(());
        };
        let Some((points, triangles)) = document.surface(&reader, primitive, name)? else { return Ok(()) };
        let count = points.len();
        let is_skinned = skin.is_some() && primitive.attributes.contains_key("JOINTS_0");
        let most = (0..count).map(|v| mesh.influences(v).len()).max().unwrap_or(1).max(1);
        let (mut joints, mut weights) = (Vec::new(), Vec::new());
        for v in 0..count {
            let own = mesh.influences(v);
            for k in 0..most {
                joints.push(own.get(k).map_or(0, |i| self.joint_of[i.node]));
                weights.push(own.get(k).map_or(0.0, |i| i.weight as f32));
            }
        }
        let bind = if is_skinned { DAffine3::IDENTITY } else { self.rest(mesh.node) };
        let (low, high) =
            points.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(a, b), p| (a.min(*p), b.max(*p)));
        let mut more = String::new();
        let floats = |key: &str, kind: &str| match primitive.attributes.get(key) {
            Some(&accessor) => reader.floats(accessor, &[kind]).map(Some),
            None => Ok(None),
        };
        if let Some(normals) = floats("NORMAL", "VEC3")?.filter(|n| n.len() == 3 * count) {
            let normals = list(normals.chunks_exact(3), |n| format!("({}, {}, {})", n[0], n[1], n[2]));
            let _ = write!(
                more,
                "        normal3f[] normals = {normals} (\n            interpolation = \"vertex\"\n        )\n"
            );
        }
        if let Some(places) = floats("TEXCOORD_0", "VEC2")?.filter(|n| n.len() == 2 * count) {
            // The origin of textures is above in glTF, below in USD.
            let places = list(places.chunks_exact(2), |n| format!("({}, {})", n[0], 1.0 - n[1]));
            let _ = write!(
                more,
                "        texCoord2f[] primvars:st = {places} (\n            interpolation = \"vertex\"\n        )\n"
            );
        }
        if let Some(material) = primitive.material {
            let _ = writeln!(more, "        rel material:binding = </Character/Materials/Material_{material}>");
        }
        let _ = write!(
            self.text,
            "    def Mesh \"{name}\" (\n        prepend apiSchemas = [\"SkelBindingAPI\", \"MaterialBindingAPI\"]\n    )\n    {{\n        \
             uniform token subdivisionScheme = \"none\"\n        float3[] extent = [{}, {}]\n        int[] faceVertexCounts = {}\n        int[] faceVertexIndices = {}\n        \
             point3f[] points = {}\n{more}        matrix4d primvars:skel:geomBindTransform = {}\n        int[] primvars:skel:jointIndices = {} (\n            elementSize = {most}\n            \
             interpolation = \"vertex\"\n        )\n        float[] primvars:skel:jointWeights = {} (\n            elementSize = {most}\n            interpolation = \"vertex\"\n        )\n        \
             rel skel:skeleton = </Character/Skeleton_{skeleton}>\n    }}\n\n",
            row(low),
            row(high),
            list(&triangles, |_| "3".into()),
            list(triangles.iter().flatten(), u32::to_string),
            list(&points, |p| row(*p)),
            matrix(&bind),
            list(&joints, usize::to_string),
            list(&weights, f32::to_string),
        );
        Ok(())
    }
}
