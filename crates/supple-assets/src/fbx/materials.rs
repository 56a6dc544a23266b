//! Materials of an FBX file as those of glTF, with the textures that the file holds or that lie beside it.

use super::{Writer, push};
use crate::FileError;
use serde_json::json;
use ufbx::{Material, MaterialMap, Texture, WrapMode};

impl Writer<'_> {
    /// The index of a material in the document.
    pub(super) fn material(&mut self, material: &Material) -> Result<usize, FileError> {
        let id = material.element.typed_id;
        let known = self.root["materials"].as_array().into_iter().flatten();
        if let Some(k) = known.into_iter().position(|m| m["extras"]["fbx"] == id) {
            return Ok(k);
        }
        let name: &str = &material.element.name;
        let pbr = &material.pbr;
        let factor = if pbr.base_factor.has_value { part(&pbr.base_factor) } else { 1.0 };
        let base = &pbr.base_color.value_vec4;
        let mut colour = [base.x, base.y, base.z].map(|c| unit(c * factor));
        let opacity = if pbr.opacity.has_value { part(&pbr.opacity) } else { 1.0 };
        let base_texture = self.texture(&pbr.base_color, name)?;
        if base_texture.is_some() {
            // The colour is what is shown without the texture.
            colour = [1.0; 3];
        }
        let roughness = if pbr.roughness.has_value { part(&pbr.roughness) } else { 0.8 };
        let metalness = if pbr.metalness.has_value { part(&pbr.metalness) } else { 0.0 };
        let mut surface = json!({
            "baseColorFactor": [colour[0], colour[1], colour[2], opacity],
            "metallicFactor": metalness,
            "roughnessFactor": roughness,
        });
        if let Some(texture) = base_texture {
            surface["baseColorTexture"] = json!({ "index": texture });
        }
        let mut own = json!({ "name": name, "pbrMetallicRoughness": surface, "extras": { "fbx": id } });
        if let Some(texture) = self.texture(&pbr.normal_map, name)? {
            own["normalTexture"] = json!({ "index": texture });
        }
        let glow = &pbr.emission_color.value_vec4;
        let strength = if pbr.emission_factor.has_value { part(&pbr.emission_factor) } else { 1.0 };
        let glow = [glow.x, glow.y, glow.z].map(|c| unit(c * strength));
        if glow.iter().any(|c| *c > 0.0) {
            own["emissiveFactor"] = json!(glow);
            if let Some(texture) = self.texture(&pbr.emission_color, name)? {
                own["emissiveTexture"] = json!({ "index": texture });
            }
        }
        if opacity < 1.0 {
            own["alphaMode"] = "BLEND".into();
        }
        if material.features.double_sided.enabled {
            own["doubleSided"] = true.into();
        }
        Ok(push(&mut self.root, "materials", own))
    }

    /// The texture of a map, put into the document.
    fn texture(&mut self, map: &MaterialMap, material: &str) -> Result<Option<usize>, FileError> {
        let Some(texture) = map.texture.as_ref().filter(|_| map.texture_enabled) else { return Ok(None) };
        // A texture of several layers is its first file.
        let texture: &Texture = texture.file_textures.first().map_or(&**texture, |first| first);
        let id = texture.element.typed_id;
        let known = self.root["textures"].as_array().into_iter().flatten();
        if let Some(k) = known.into_iter().position(|t| t["extras"]["fbx"] == id) {
            return Ok(Some(k));
        }
        let Some((bytes, kind)) = self.image(texture, material) else { return Ok(None) };
        self.spend(bytes.len() / 16)?;
        let view = crate::gltf::push_view(&mut self.root, &mut self.binary, &bytes, None);
        let name: &str = &texture.element.name;
        let image = push(&mut self.root, "images", json!({ "name": name, "bufferView": view, "mimeType": kind }));
        let wrap = |mode: WrapMode| if mode == WrapMode::Clamp { 33071 } else { 10497 };
        let sampler = json!({ "wrapS": wrap(texture.wrap_u), "wrapT": wrap(texture.wrap_v) });
        let sampler = push(&mut self.root, "samplers", sampler);
        let own = json!({ "name": name, "source": image, "sampler": sampler, "extras": { "fbx": id } });
        Ok(Some(push(&mut self.root, "textures", own)))
    }

    /// The bytes of an image that glTF knows, from the file or beside it.
    fn image(&mut self, texture: &Texture, material: &str) -> Option<(Vec<u8>, &'static str)> {
        let held: &[u8] = &texture.content;
        let video: &[u8] = texture.video.as_ref().map_or(&[], |video| &video.content);
        let named: &str = &texture.relative_filename;
        let bytes = match (held, video) {
            ([], []) => {
                // As the file tells it, or by its name alone: paths are those of another machine.
                let name = named.replace('\\', "/");
                let last = name.rsplit('/').next().unwrap_or_default().to_owned();
                let found = [name.as_str(), &last]
                    .into_iter()
                    .filter(|name| !name.is_empty())
                    .find_map(|name| self.file.beside(name).ok().map(|file| file.bytes().to_vec()));
                match found {
                    Some(bytes) => bytes,
                    None => {
                        let text = format!("its texture \"{named}\" is neither in the file nor beside it");
                        self.note("import/texture", material, text);
                        return None;
                    }
                }
            }
            ([], video) => video.to_vec(),
            (held, _) => held.to_vec(),
        };
        let kind = if bytes.starts_with(b"\x89PNG") {
            "image/png"
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            "image/jpeg"
        } else {
            let text = format!("its texture \"{named}\" is neither PNG nor JPEG: it is left out");
            self.note("import/texture", material, text);
            return None;
        };
        Some((bytes, kind))
    }
}

/// A share.
fn part(map: &MaterialMap) -> f64 {
    unit(map.value_vec4.x)
}

fn unit(x: f64) -> f64 {
    if x.is_finite() { x.clamp(0.0, 1.0) } else { 1.0 }
}
