//! Meshes of an FBX file: triangles of each material, their corners made one where all that they have is the same, and the skin.

use super::{Take, Writer, affine, bad, push, vector};
use crate::FileError;
use glam::{DAffine3, DMat4};
use serde_json::{Value, json};
use std::collections::HashMap;
use ufbx::{Mesh, Node, SceneRoot, SkinDeformer};

/// A vertex as the document has it: which position, normal, texture coordinates and colour of the file it is.
type Corner = [u32; 4];

/// A vertex hangs on as many bones as viewers of glTF take.
const INFLUENCES: usize = 4;
/// What is left out of a vertex's weights when it hangs on more is told from this share on.
const NOTICED: f64 = 0.02;

/// Who carries the vertices of a mesh.
struct Binding {
    skin: usize,
    /// By vertex of the file: joints of the skin and weights, which sum up to 1.
    of_vertex: Vec<[(u16, f32); INFLUENCES]>,
}

impl Writer<'_> {
    pub(super) fn mesh(
        &mut self,
        scene: &SceneRoot,
        k: usize,
        node: &Node,
        mesh: &Mesh,
        takes: &[Take],
    ) -> Result<(), FileError> {
        let name: &str = &node.element.name;
        let Some(own_node) = self.index(k).filter(|_| mesh.num_triangles > 0) else { return Ok(()) };
        if mesh.skin_deformers.len() > 1 {
            self.note("import/skin", name, "it has several skins: the first is read");
        }
        if !mesh.blend_deformers.is_empty() {
            self.note(
                "import/morph",
                name,
                "it has blend shapes, which are not read from FBX: export it as .glb to keep them",
            );
        }
        if !mesh.cache_deformers.is_empty() {
            self.note("import/mesh", name, "it has a cache of points, which is not read");
        }
        let binding = match mesh.skin_deformers.first() {
            Some(skin) => self.binding(scene, (k, node), mesh, skin, takes)?,
            None => None,
        };
        let mut primitives = Vec::new();
        for part in &mesh.material_parts {
            if part.num_triangles == 0 {
                continue;
            }
            let mut primitive = self.primitive(mesh, &part.face_indices, binding.as_ref(), name)?;
            let material = node.materials.get(part.index as usize).or(mesh.materials.get(part.index as usize));
            if let Some(material) = material {
                primitive["material"] = self.material(material)?.into();
            }
            primitives.push(primitive);
        }
        let own: &str = &mesh.element.name;
        let name = if own.is_empty() { name } else { own };
        let mesh = push(&mut self.root, "meshes", json!({ "name": name, "primitives": primitives }));
        self.root["nodes"][own_node]["mesh"] = mesh.into();
        if let Some(binding) = binding {
            self.root["nodes"][own_node]["skin"] = binding.skin.into();
        }
        Ok(())
    }

    fn primitive(
        &mut self,
        mesh: &Mesh,
        faces: &[u32],
        binding: Option<&Binding>,
        name: &str,
    ) -> Result<Value, FileError> {
        let damaged = || bad(self.file.path(), "a face names a vertex that does not exist").at(name.to_owned());
        let mut of_corner: HashMap<Corner, u32> = HashMap::new();
        let (mut corners, mut triangles): (Vec<Corner>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut indices = Vec::new();
        for &face in faces {
            let face = *mesh.faces.get(face as usize).ok_or_else(damaged)?;
            if face.num_indices < 3 || face.index_begin as usize + face.num_indices as usize > mesh.num_indices {
                continue;
            }
            let count = 3 * ufbx::triangulate_face_vec(&mut indices, mesh, face) as usize;
            for &index in indices.iter().take(count) {
                let at = index as usize;
                let pick = |exists: bool, list: &[u32]| if exists { list.get(at).copied() } else { Some(0) };
                let corner = [
                    pick(true, &mesh.vertex_indices),
                    pick(mesh.vertex_normal.exists, &mesh.vertex_normal.indices),
                    pick(mesh.vertex_uv.exists, &mesh.vertex_uv.indices),
                    pick(mesh.vertex_color.exists, &mesh.vertex_color.indices),
                ];
                let [Some(a), Some(b), Some(c), Some(d)] = corner else { return Err(damaged()) };
                let corner = [a, b, c, d];
                let next = corners.len() as u32;
                let vertex = *of_corner.entry(corner).or_insert(next);
                if vertex == next {
                    corners.push(corner);
                }
                triangles.push(vertex);
            }
        }
        self.spend(triangles.len() + 20 * corners.len())?;
        let path = self.file.path().to_owned();
        let damaged = || bad(&path, "a corner names a value that does not exist").at(name.to_owned());
        let mut attributes = json!({});
        let mut numbers = Vec::new();
        for [vertex, ..] in &corners {
            numbers.extend(vector(mesh.vertices.get(*vertex as usize).ok_or_else(damaged)?).map(|x| x as f32));
        }
        if numbers.iter().any(|x| !x.is_finite()) {
            return Err(FileError::new("file/number", &path, "a vertex is not finite", "export the file again")
                .at(name.to_owned()));
        }
        attributes["POSITION"] = self.floats(&numbers, 3, Some(34962), true).into();
        if mesh.vertex_normal.exists {
            numbers.clear();
            for [_, normal, ..] in &corners {
                let n = vector(mesh.vertex_normal.values.get(*normal as usize).ok_or_else(damaged)?);
                let n = glam::DVec3::from(n).try_normalize().unwrap_or(glam::DVec3::Y);
                numbers.extend(n.as_vec3().to_array());
            }
            attributes["NORMAL"] = self.floats(&numbers, 3, Some(34962), false).into();
        }
        if mesh.vertex_uv.exists {
            numbers.clear();
            for [_, _, uv, _] in &corners {
                let uv = mesh.vertex_uv.values.get(*uv as usize).ok_or_else(damaged)?;
                // The origin of textures is below in FBX, above in glTF.
                let uv = [uv.x as f32, 1.0 - uv.y as f32].map(|x| if x.is_finite() { x } else { 0.0 });
                numbers.extend(uv);
            }
            attributes["TEXCOORD_0"] = self.floats(&numbers, 2, Some(34962), false).into();
        }
        if mesh.vertex_color.exists {
            numbers.clear();
            for [_, _, _, colour] in &corners {
                let c = mesh.vertex_color.values.get(*colour as usize).ok_or_else(damaged)?;
                numbers
                    .extend([c.x, c.y, c.z, c.w].map(|x| if x.is_finite() { x.clamp(0.0, 1.0) as f32 } else { 1.0 }));
            }
            attributes["COLOR_0"] = self.floats(&numbers, 4, Some(34962), false).into();
        }
        if let Some(binding) = binding {
            let of = |corner: &Corner| binding.of_vertex.get(corner[0] as usize).ok_or_else(damaged);
            let (mut joints, mut weights) = (Vec::new(), Vec::new());
            for corner in &corners {
                for (joint, weight) in of(corner)? {
                    joints.extend(joint.to_le_bytes());
                    weights.push(*weight);
                }
            }
            let view = crate::gltf::push_view(&mut self.root, &mut self.binary, &joints, Some(34962));
            let accessor = json!({ "bufferView": view, "componentType": 5123, "count": corners.len(), "type": "VEC4" });
            attributes["JOINTS_0"] = push(&mut self.root, "accessors", accessor).into();
            attributes["WEIGHTS_0"] = self.floats(&weights, 4, Some(34962), false).into();
        }
        let triangles: Vec<[u32; 3]> = triangles.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect();
        let indices = crate::gltf::push_indices(&mut self.root, &mut self.binary, &triangles);
        Ok(json!({ "attributes": attributes, "indices": indices }))
    }

    /// The skin of a mesh. Vertices that no bone carries hang on the node of the mesh.
    fn binding(
        &mut self,
        scene: &SceneRoot,
        (k, node): (usize, &Node),
        mesh: &Mesh,
        skin: &SkinDeformer,
        takes: &[Take],
    ) -> Result<Option<Binding>, FileError> {
        let name: &str = &node.element.name;
        let (mut joints, mut binds): (Vec<usize>, Vec<f32>) = (Vec::new(), Vec::new());
        let matrix = |m: DAffine3| DMat4::from(m).as_mat4().to_cols_array();
        // By cluster: its joint.
        let mut of_cluster = Vec::new();
        for cluster in &skin.clusters {
            let mut bind = affine(&cluster.geometry_to_bone);
            let mut bone = cluster.bone_node.as_ref().map(|bone| bone.element.typed_id as usize);
            // A helper that only scales its own part of the mesh, and never changes, is put into the binding: the bone itself carries the vertices.
            if let Some(helper) = bone.and_then(|bone| scene.nodes.get(bone)).filter(|node| node.is_scale_helper) {
                let id = helper.element.typed_id as usize;
                let parent = helper.parent.as_ref().map(|parent| parent.element.typed_id as usize);
                if parent.is_some() && !takes.iter().any(|take| take.moves(id)) {
                    let (scale, turn, place) = self.rest[id];
                    bind = DAffine3::from_scale_rotation_translation(scale, turn, place) * bind;
                    bone = parent;
                }
            }
            let bone = bone.filter(|bone| *bone < scene.nodes.len()).and_then(|bone| self.index(bone));
            of_cluster.push(bone.map(|bone| {
                joints.push(bone);
                binds.extend(matrix(bind));
                joints.len() - 1
            }));
        }
        if joints.is_empty() {
            return Ok(None);
        }
        self.spend(8 * mesh.num_vertices + 16 * joints.len())?;
        let own = joints.len();
        let (mut of_vertex, mut left_out, mut is_loose) = (Vec::with_capacity(mesh.num_vertices), 0.0f64, false);
        for v in 0..mesh.num_vertices {
            let told = skin.vertices.get(v);
            let (begin, count) = told.map_or((0, 0), |v| (v.weight_begin as usize, v.num_weights as usize));
            let mut here: Vec<(usize, f64)> = Vec::new();
            for weight in skin.weights.iter().skip(begin).take(count) {
                let joint = of_cluster.get(weight.cluster_index as usize).copied().flatten();
                if let (Some(joint), true) = (joint, weight.weight > 0.0 && weight.weight.is_finite()) {
                    here.push((joint, weight.weight));
                }
            }
            here.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let all: f64 = here.iter().map(|(_, w)| w).sum();
            here.truncate(INFLUENCES);
            let kept: f64 = here.iter().map(|(_, w)| w).sum();
            let mut list = [(0, 0.0); INFLUENCES];
            if kept > 0.0 {
                left_out = left_out.max(1.0 - kept / all);
                for (slot, (joint, weight)) in list.iter_mut().zip(here) {
                    *slot = (joint as u16, (weight / kept) as f32);
                }
            } else {
                is_loose = true;
                list[0] = (own as u16, 1.0);
            }
            of_vertex.push(list);
        }
        if is_loose {
            joints.extend(self.index(k));
            binds.extend(matrix(affine(&node.geometry_to_node)));
        }
        if joints.len() > usize::from(u16::MAX) {
            return Err(bad(self.file.path(), "its skin has more than 65535 bones").at(name.to_owned()));
        }
        if left_out > NOTICED {
            let text = format!(
                "vertices hang on more than {INFLUENCES} bones: up to {:.0} % of their weights is left out",
                100.0 * left_out
            );
            self.note("import/influences", name, text);
        }
        if binds.iter().any(|x| !x.is_finite()) {
            return Err(FileError::new(
                "file/number",
                self.file.path(),
                "its skin is not finite",
                "export the file again",
            )
            .at(name.to_owned()));
        }
        let bytes: Vec<u8> = binds.iter().flat_map(|x| x.to_le_bytes()).collect();
        let view = crate::gltf::push_view(&mut self.root, &mut self.binary, &bytes, None);
        let accessor = json!({ "bufferView": view, "componentType": 5126, "count": joints.len(), "type": "MAT4" });
        let matrices = push(&mut self.root, "accessors", accessor);
        let skin =
            push(&mut self.root, "skins", json!({ "name": name, "joints": joints, "inverseBindMatrices": matrices }));
        Ok(Some(Binding { skin, of_vertex }))
    }
}
