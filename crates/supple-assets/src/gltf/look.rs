//! How the meshes of a file look: normals, textures, what is cut out or shines through. For pictures that are drawn without a browser.

use super::document::Document;
use super::mesh::SkinnedMesh;
use super::schema::Primitive;
use super::{Reader, container};
use crate::files::InputFile;
use crate::{Character, DrawnMesh, FileError};
use base64::Engine;
use glam::{DAffine3, DMat3, DVec3};
use serde_json::Value;

/// Largest number of a material.
const MOST_NUMBER: f32 = 1e6;
/// Bytes of images that are taken from the file itself, as a multiple of its size: many images may name the same ones.
const MOST_COPIES: usize = 4;

/// The meshes of a character, ready to be drawn, and the images that they name.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// One a mesh.
    pub meshes: Vec<Look>,
    /// The bytes of the images that meshes name, PNG or JPEG or what else the file has; empty for the others, and where they cannot be had.
    pub images: Vec<Vec<u8>>,
}

/// A mesh and how it looks.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The mesh as bodies carry it.
    pub mesh: DrawnMesh,
    /// By vertex: outward, of unit length, at the start of the scene; empty: its triangles are flat.
    pub normals: Vec<[f32; 3]>,
    /// By vertex: its place in the image, from 0 to 1 right and down; empty where there is no image.
    pub places: Vec<[f32; 2]>,
    /// By vertex: red, green, blue, linear, and opacity, which multiply the material's; empty: 1.
    pub tints: Vec<[f32; 4]>,
    /// What it is made of.
    pub material: MaterialLook,
}

/// How a surface looks, as far as a picture with one light shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaterialLook {
    /// Red, green, blue, linear, and opacity.
    pub colour: [f32; 4],
    /// The image that multiplies it, of [`Looks::images`].
    pub image: Option<usize>,
    /// What is beyond the image, right and down.
    pub wraps: [Wrap; 2],
    /// What its opacity means.
    pub opacity: Opacity,
    /// Whether light and shadow leave it as it is.
    pub unlit: bool,
    /// Light of its own, linear.
    pub glow: [f32; 3],
}

impl Default for MaterialLook {
    fn default() -> MaterialLook {
        MaterialLook {
            colour: [1.0; 4],
            image: None,
            wraps: [Wrap::Repeat; 2],
            opacity: Opacity::Opaque,
            unlit: false,
            glow: [0.0; 3],
        }
    }
}

/// What is beyond the edge of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// The image again.
    Repeat,
    /// The image mirrored.
    Mirror,
    /// Its last row or column.
    Clamp,
}

/// What the opacity of a surface means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opacity {
    /// Nothing.
    Opaque,
    /// What is below this is not there.
    Cut(f32),
    /// How much of it is seen.
    Blend,
}

impl Character {
    /// The meshes with their materials, as the file has them.
    pub fn looks(&self) -> Result<Looks, FileError> {
        let json: Value = serde_json::from_str(&self.document.container.json).unwrap_or_default();
        let mut looks = Looks::default();
        let reader = self.document.reader();
        for mesh in self.meshes.iter() {
            let Some(drawn) = self.rig.drawn(mesh) else { continue };
            looks.meshes.push(self.document.look(&json, &reader, mesh, drawn)?);
        }
        let images = json["images"].as_array().map_or(0, Vec::len);
        // All images together are read within one allowance.
        let file = self.document.file.afresh();
        let buffers: usize = self.document.container.buffers.iter().map(|buffer| buffer.len()).sum();
        let mut left = MOST_COPIES * (buffers + self.document.container.json.len());
        for k in 0..images {
            let is_named = looks.meshes.iter().any(|look| look.material.image == Some(k));
            let image = is_named.then(|| self.document.image(&json["images"][k], &file, &mut left)).flatten();
            looks.images.push(image.unwrap_or_default());
        }
        Ok(looks)
    }
}

impl Document {
    fn look(&self, json: &Value, reader: &Reader<'_>, mesh: &SkinnedMesh, drawn: DrawnMesh) -> Result<Look, FileError> {
        let own = self.root().nodes[mesh.node].mesh.unwrap_or_default();
        let primitive = &self.root().meshes[own].primitives[mesh.primitive];
        let count = mesh.vertices.len();
        let (material, texture) = material(json, primitive.material);
        let rows = |name: &str, kinds: &[&str], width: usize| -> Result<Vec<f32>, FileError> {
            let Some(&accessor) = primitive.attributes.get(name) else { return Ok(Vec::new()) };
            let values = reader.floats(accessor, kinds)?;
            Ok(if values.len() >= width * count { values } else { Vec::new() })
        };
        let set = texture["extensions"]["KHR_texture_transform"]["texCoord"].as_u64().or(texture["texCoord"].as_u64());
        let places = match material.image {
            Some(_) => rows(&format!("TEXCOORD_{}", set.unwrap_or(0)), &["VEC2"], 2)?,
            None => Vec::new(),
        };
        let moved = transform(&texture["extensions"]["KHR_texture_transform"]);
        let places = places.chunks_exact(2).take(count).map(|p| moved([p[0], p[1]])).collect();
        let mut tints = Vec::new();
        if let Some(&accessor) = primitive.attributes.get("COLOR_0") {
            let kind = self.root().accessors.get(accessor).map_or("", |a| a.kind.as_str());
            let width = if kind == "VEC3" { 3 } else { 4 };
            let values = rows("COLOR_0", &["VEC3", "VEC4"], width)?;
            let tint = |c: &[f32]| [c[0], c[1], c[2], c.get(3).copied().unwrap_or(1.0)];
            tints = values.chunks_exact(width).take(count).map(tint).collect();
        }
        let normals = rows("NORMAL", &["VEC3"], 3)?;
        let normals = self.normals_at_start(reader, mesh, primitive, &normals)?;
        Ok(Look { mesh: drawn, normals, places, tints, material })
    }

    /// Normals of a mesh in the world at the start, as its skin turns them.
    fn normals_at_start(
        &self,
        reader: &Reader<'_>,
        mesh: &SkinnedMesh,
        primitive: &Primitive,
        normals: &[f32],
    ) -> Result<Vec<[f32; 3]>, FileError> {
        let turned = |matrix: &DAffine3| matrix.matrix3.inverse().transpose();
        let own = turned(&self.world[mesh.node]);
        let skin = match self.root().nodes[mesh.node].skin {
            Some(skin) if primitive.attributes.contains_key("JOINTS_0") => self.binds(reader, skin)?,
            _ => Vec::new(),
        };
        // Several joints of a skin may be one node; its first bind stands for them.
        let by_node =
            |node: usize| skin.iter().find(|(joint, _)| *joint == node).map(|(_, bind)| self.world[node] * *bind);
        let mut known: Vec<Option<DMat3>> = vec![None; self.world.len()];
        let mut all = Vec::with_capacity(normals.len() / 3);
        for (v, n) in normals.chunks_exact(3).take(mesh.vertices.len()).enumerate() {
            let n = DVec3::new(n[0].into(), n[1].into(), n[2].into());
            let mut sum = DVec3::ZERO;
            for influence in mesh.influences(v) {
                let matrix = *known[influence.node]
                    .get_or_insert_with(|| by_node(influence.node).map_or(own, |matrix| turned(&matrix)));
                sum += (matrix * n).normalize_or_zero() * influence.weight;
            }
            all.push(sum.normalize_or(DVec3::Y).as_vec3().to_array());
        }
        Ok(all)
    }

    /// The bytes of an image: in a buffer, in the JSON, or in a file beside it. What the file itself has is taken from `left`.
    fn image(&self, image: &Value, file: &InputFile, left: &mut usize) -> Option<Vec<u8>> {
        let mut spend = |bytes: usize| {
            *left = left.checked_sub(bytes)?;
            Some(())
        };
        if let Some(view) = image["bufferView"].as_u64() {
            let view = self.root().buffer_views.get(usize::try_from(view).ok()?)?;
            let bytes = self.container.buffers.get(view.buffer)?;
            let bytes = bytes.get(view.byte_offset..view.byte_offset.checked_add(view.byte_length)?)?;
            spend(bytes.len())?;
            return Some(bytes.to_vec());
        }
        let uri = image["uri"].as_str()?;
        match uri.strip_prefix("data:") {
            Some(data) => {
                spend(data.len())?;
                base64::engine::general_purpose::STANDARD.decode(data.split_once("base64,")?.1).ok()
            }
            None => container::beside(file, uri).ok(),
        }
    }
}

/// A material by its number, and the JSON of the texture of its colour.
fn material(json: &Value, index: Option<usize>) -> (MaterialLook, Value) {
    let Some(index) = index else { return (MaterialLook::default(), Value::Null) };
    let own = &json["materials"][index];
    let pbr = &own["pbrMetallicRoughness"];
    let texture = pbr["baseColorTexture"].clone();
    let named = texture["index"].as_u64().map(|k| &json["textures"][k as usize]);
    let sampler = named.and_then(|t| t["sampler"].as_u64()).map_or(&Value::Null, |k| &json["samplers"][k as usize]);
    let wrap = |key: &str| match sampler[key].as_u64() {
        Some(33071) => Wrap::Clamp,
        Some(33648) => Wrap::Mirror,
        _ => Wrap::Repeat,
    };
    // What a renderer shows that does not know the extension is what can be read here.
    let image = named.and_then(|t| t["source"].as_u64());
    let strength = number(&own["extensions"]["KHR_materials_emissive_strength"]["emissiveStrength"], 1.0);
    // Light of an image is not read: its factor alone would make all of it shine.
    let glows = own["emissiveTexture"].is_null();
    let look = MaterialLook {
        colour: std::array::from_fn(|k| number(&pbr["baseColorFactor"][k], 1.0).clamp(0.0, 1.0)),
        image: image.map(|k| k as usize),
        wraps: [wrap("wrapS"), wrap("wrapT")],
        opacity: match own["alphaMode"].as_str() {
            Some("MASK") => Opacity::Cut(number(&own["alphaCutoff"], 0.5)),
            Some("BLEND") => Opacity::Blend,
            _ => Opacity::Opaque,
        },
        unlit: own["extensions"]["KHR_materials_unlit"].is_object(),
        glow: std::array::from_fn(|k| if glows { strength * number(&own["emissiveFactor"][k], 0.0) } else { 0.0 }),
    };
    (look, texture)
}

/// A number of the JSON that is one in single precision too, no larger than pictures can show.
fn number(value: &Value, usual: f32) -> f32 {
    value.as_f64().map_or(usual, |x| (x as f32).clamp(-MOST_NUMBER, MOST_NUMBER))
}

/// How `KHR_texture_transform` moves a place: scaled, turned, shifted.
fn transform(told: &Value) -> impl Fn([f32; 2]) -> [f32; 2] {
    let pair = |key: &str, usual: f32| [0, 1].map(|k| number(&told[key][k], usual));
    let (offset, scale) = (pair("offset", 0.0), pair("scale", 1.0));
    let (sin, cos) = number(&told["rotation"], 0.0).sin_cos();
    move |[u, v]| {
        let [u, v] = [u * scale[0], v * scale[1]];
        [cos * u + sin * v + offset[0], -sin * u + cos * v + offset[1]]
    }
}
