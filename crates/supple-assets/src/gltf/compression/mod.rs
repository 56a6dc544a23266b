//! Compressed meshes made plain: what `KHR_draco_mesh_compression` and `EXT_meshopt_compression` hold is put into a buffer of its own, and the JSON tells
//! of it as if it had never been compressed. All that reads, draws or bakes a file then needs to know nothing of it.

mod draco;
mod meshopt;

use super::container::too_large;
use crate::files::MOST_BYTES;
use crate::{FileError, Note};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) const DRACO: &str = "KHR_draco_mesh_compression";
pub(crate) const MESHOPT: &str = "EXT_meshopt_compression";

/// How many numbers may be unfolded from each compressed byte, beside [`SOME_NUMBERS`].
const NUMBERS_PER_BYTE: usize = 64;
const SOME_NUMBERS: usize = 1 << 18;

/// A file that was compressed, as it would be if it were not.
pub(super) struct Plain {
    pub(super) json: String,
    pub(super) note: Note,
}

/// Unpacks what is compressed; `None` where nothing is. What is unpacked is one more buffer.
pub(super) fn unpack(path: &Path, json: &str, buffers: &mut Vec<Vec<u8>>) -> Result<Option<Plain>, FileError> {
    if !json.contains(DRACO) && !json.contains(MESHOPT) {
        return Ok(None);
    }
    // It was read before: it is JSON.
    let mut root: Value = serde_json::from_str(json).unwrap_or_default();
    let mut out = Unpacked { path, bytes: Vec::new(), views: Vec::new(), buffer: buffers.len() };
    let by_meshopt = out.views(&mut root, buffers)?;
    let by_draco = out.meshes(&mut root, buffers)?;
    if !by_meshopt && !by_draco {
        return Ok(None);
    }
    let Unpacked { bytes, views, .. } = out;
    list(&mut root, "bufferViews").extend(views);
    list(&mut root, "buffers").push(json!({ "byteLength": bytes.len() }));
    buffers.push(bytes);
    for buffer in list(&mut root, "buffers") {
        forget(buffer, MESHOPT);
    }
    for key in ["extensionsUsed", "extensionsRequired"] {
        let names = list(&mut root, key);
        names.retain(|name| name != DRACO && name != MESHOPT);
        if names.is_empty() {
            root.as_object_mut().map(|root| root.remove(key));
        }
    }
    let names: Vec<&str> =
        [(by_draco, DRACO), (by_meshopt, MESHOPT)].into_iter().filter_map(|(is, n)| is.then_some(n)).collect();
    let text = format!("it is compressed ({}): what is baked of it is not", names.join(", "));
    Ok(Some(Plain { json: root.to_string(), note: Note { code: "import/compressed", part: "meshes".into(), text } }))
}

/// A list of the file, made if it is not there.
fn list<'r>(root: &'r mut Value, key: &str) -> &'r mut Vec<Value> {
    if !root[key].is_array() {
        root[key] = json!([]);
    }
    root[key].as_array_mut().expect("it was made one")
}

/// Takes an extension out of a part of the file.
fn forget(part: &mut Value, name: &str) {
    if let Some(extensions) = part.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove(name);
        if extensions.is_empty() {
            part.as_object_mut().map(|part| part.remove("extensions"));
        }
    }
}

fn number(value: &Value, key: &str) -> Option<usize> {
    value.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
}

/// What was unpacked so far.
struct Unpacked<'p> {
    path: &'p Path,
    bytes: Vec<u8>,
    /// Views of it that are still to be told of.
    views: Vec<Value>,
    /// Which buffer it will be.
    buffer: usize,
}

impl Unpacked<'_> {
    fn bad(&self, place: &str, what: impl Into<String>) -> FileError {
        FileError::new("file/compression", self.path, what, "export the file again, or without compression of meshes")
            .at(place.to_owned())
    }

    /// Adds bytes; where they begin.
    fn add(&mut self, bytes: &[u8]) -> Result<usize, FileError> {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let start = self.bytes.len();
        if (start + bytes.len()) as u64 > MOST_BYTES {
            return Err(too_large(self.path, format!("its meshes unfold to more than {MOST_BYTES} bytes")));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(start)
    }

    /// Views that are compressed; whether there are any.
    fn views(&mut self, root: &mut Value, buffers: &[Vec<u8>]) -> Result<bool, FileError> {
        let mut found = false;
        for (i, view) in list(root, "bufferViews").iter_mut().enumerate() {
            let Some(told) = view.pointer(&format!("/extensions/{MESHOPT}")).cloned() else { continue };
            let place = format!("bufferViews[{i}].extensions.{MESHOPT}");
            let needed = |key: &str| number(&told, key).ok_or_else(|| self.bad(&place, format!("it has no {key}")));
            let (buffer, length) = (needed("buffer")?, needed("byteLength")?);
            let (stride, count) = (needed("byteStride")?, needed("count")?);
            let start = number(&told, "byteOffset").unwrap_or(0);
            let bytes = start.checked_add(length).and_then(|end| buffers.get(buffer)?.get(start..end));
            let bytes = bytes.ok_or_else(|| self.bad(&place, "its bytes reach beyond the buffer"))?;
            let mode = match told["mode"].as_str() {
                Some("ATTRIBUTES") => meshopt::Mode::Attributes,
                Some("TRIANGLES") => meshopt::Mode::Triangles,
                Some("INDICES") => meshopt::Mode::Indices,
                _ => return Err(self.bad(&place, "its mode is none of ATTRIBUTES, TRIANGLES, INDICES")),
            };
            let filter = match told["filter"].as_str() {
                None | Some("NONE") => meshopt::Filter::None,
                Some("OCTAHEDRAL") => meshopt::Filter::Octahedral,
                Some("QUATERNION") => meshopt::Filter::Quaternion,
                Some("EXPONENTIAL") => meshopt::Filter::Exponential,
                Some(other) => return Err(self.bad(&place, format!("there is no filter \"{other}\""))),
            };
            let size = count.checked_mul(stride).filter(|size| *size as u64 <= MOST_BYTES);
            if size.is_none_or(|size| size > NUMBERS_PER_BYTE * length + SOME_NUMBERS) {
                return Err(self.bad(&place, format!("{length} bytes cannot hold {count} elements of {stride} bytes")));
            }
            let plain = meshopt::decode(bytes, count, stride, mode, filter)
                .map_err(|what| self.bad(&place, format!("its data is damaged: {what}")))?;
            let start = self.add(&plain)?;
            view["buffer"] = self.buffer.into();
            view["byteOffset"] = start.into();
            view["byteLength"] = plain.len().into();
            forget(view, MESHOPT);
            found = true;
        }
        Ok(found)
    }

    /// Primitives that are compressed; whether there are any.
    fn meshes(&mut self, root: &mut Value, buffers: &[Vec<u8>]) -> Result<bool, FileError> {
        let first_view = list(root, "bufferViews").len();
        let mut found = false;
        let mut meshes = list(root, "meshes").clone();
        for (i, mesh) in meshes.iter_mut().enumerate() {
            let Some(primitives) = mesh.get_mut("primitives").and_then(Value::as_array_mut) else { continue };
            for (k, primitive) in primitives.iter_mut().enumerate() {
                let Some(told) = primitive.pointer(&format!("/extensions/{DRACO}")).cloned() else { continue };
                let place = format!("meshes[{i}].primitives[{k}].extensions.{DRACO}");
                let data = self.draco(root, buffers, &told, &place)?;
                self.primitive(root, first_view, primitive, &told, &data, &place)?;
                forget(primitive, DRACO);
                found = true;
            }
        }
        root["meshes"] = meshes.into();
        if root["meshes"].as_array().is_some_and(Vec::is_empty) {
            root.as_object_mut().map(|root| root.remove("meshes"));
        }
        Ok(found)
    }

    fn draco(&self, root: &Value, buffers: &[Vec<u8>], told: &Value, place: &str) -> Result<draco::Mesh, FileError> {
        let view = number(told, "bufferView").and_then(|view| root["bufferViews"].get(view));
        let view = view.ok_or_else(|| self.bad(place, "its bufferView does not exist"))?;
        let (start, length) = (number(view, "byteOffset").unwrap_or(0), number(view, "byteLength").unwrap_or(0));
        // A view that was compressed itself lies in what was unpacked.
        let buffer = match number(view, "buffer") {
            Some(own) if own == self.buffer => Some(&self.bytes),
            other => other.and_then(|buffer| buffers.get(buffer)),
        };
        let bytes = start.checked_add(length).and_then(|end| buffer?.get(start..end));
        let bytes = bytes.ok_or_else(|| self.bad(place, "its bytes reach beyond the buffer"))?;
        draco::decode(bytes, NUMBERS_PER_BYTE * bytes.len() + SOME_NUMBERS)
            .map_err(|what| self.bad(place, format!("its data is damaged: {what}")))
    }

    /// Gives the accessors of a primitive what was unpacked.
    fn primitive(
        &mut self,
        root: &mut Value,
        first_view: usize,
        primitive: &Value,
        told: &Value,
        data: &draco::Mesh,
        place: &str,
    ) -> Result<(), FileError> {
        if !matches!(number(primitive, "mode"), None | Some(4)) {
            return Err(self.bad(place, "only triangles are compressed so, and it is drawn otherwise"));
        }
        if let Some(accessor) = number(primitive, "indices") {
            let corners: Vec<f64> = data.faces.iter().flatten().map(|i| f64::from(*i)).collect();
            self.fill(root, first_view, accessor, (&corners, 1, 34963), place)?;
        }
        for (name, id) in told["attributes"].as_object().into_iter().flatten() {
            let attribute = data.attributes.iter().find(|a| Some(u64::from(a.id)) == id.as_u64());
            let accessor = primitive.pointer(&format!("/attributes/{name}")).and_then(Value::as_u64);
            let (Some(attribute), Some(accessor)) = (attribute, accessor) else {
                return Err(
                    self.bad(place, format!("{name} is not in what is compressed, or the mesh does not have it"))
                );
            };
            let values: Vec<f64> = (0..data.points).flat_map(|p| attribute.of(p).iter().copied()).collect();
            self.fill(root, first_view, accessor as usize, (&values, attribute.components, 34962), place)?;
        }
        Ok(())
    }

    fn fill(
        &mut self,
        root: &mut Value,
        first_view: usize,
        accessor: usize,
        (values, components, target): (&[f64], usize, u32),
        place: &str,
    ) -> Result<(), FileError> {
        let Some(told) = root["accessors"].get_mut(accessor) else {
            return Err(self.bad(place, format!("there is no accessor {accessor}")));
        };
        let width = match told["type"].as_str() {
            Some("SCALAR") => 1,
            Some("VEC2") => 2,
            Some("VEC3") => 3,
            Some("VEC4") => 4,
            _ => 0,
        };
        if width != components {
            return Err(self.bad(
                place,
                format!("accessor {accessor} has {width} numbers a row, and {components} are compressed"),
            ));
        }
        let mut kind = number(told, "componentType").unwrap_or(0);
        // Sixteen bits are too few for the indices of some encoders, which count points otherwise than Draco does.
        if target == 34963 && values.iter().any(|v| *v > if kind == 5121 { 255.0 } else { 65535.0 }) {
            kind = 5125;
            told["componentType"] = kind.into();
        }
        let size = match kind {
            5120 | 5121 => 1,
            5122 | 5123 => 2,
            5125 | 5126 => 4,
            _ => return Err(self.bad(place, format!("accessor {accessor} is of no known component type"))),
        };
        // Rows of vertices begin at multiples of four bytes.
        let row = if target == 34962 { (width * size).next_multiple_of(4) } else { width * size };
        let mut bytes = vec![0; values.len() / width * row];
        for (row, values) in bytes.chunks_exact_mut(row).zip(values.chunks_exact(width)) {
            for (at, &value) in row.chunks_exact_mut(size).zip(values) {
                match kind {
                    5120 => at.copy_from_slice(&(value as i8).to_le_bytes()),
                    5121 => at.copy_from_slice(&(value as u8).to_le_bytes()),
                    5122 => at.copy_from_slice(&(value as i16).to_le_bytes()),
                    5123 => at.copy_from_slice(&(value as u16).to_le_bytes()),
                    5125 => at.copy_from_slice(&(value as u32).to_le_bytes()),
                    _ => at.copy_from_slice(&(value as f32).to_le_bytes()),
                }
            }
        }
        told["count"] = (values.len() / width).into();
        told["bufferView"] = (first_view + self.views.len()).into();
        told["byteOffset"] = 0.into();
        // What was told before compression is not quite true after it.
        let has_bounds = told.get("min").is_some() || told.get("max").is_some();
        if let Some(told) = told.as_object_mut() {
            told.remove("min");
            told.remove("max");
            if has_bounds && !values.is_empty() {
                let of = |pick: fn(f64, f64) -> f64| -> Vec<Value> {
                    (0..width)
                        .filter_map(|k| values.iter().skip(k).step_by(width).copied().reduce(pick))
                        .map(|x| if kind == 5126 { json!(x as f32) } else { json!(x as i64) })
                        .collect()
                };
                told.insert("min".into(), of(f64::min).into());
                told.insert("max".into(), of(f64::max).into());
            }
        }
        let mut view = json!({ "buffer": self.buffer, "byteLength": bytes.len(), "target": target });
        if target == 34962 {
            view["byteStride"] = row.into();
        }
        view["byteOffset"] = self.add(&bytes)?.into();
        self.views.push(view);
        Ok(())
    }
}
