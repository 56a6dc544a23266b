//! Numbers out of buffers: bounds checked, sparse values put in, integers normalised.

use super::container::{Container, too_large};
use crate::FileError;
use std::cell::Cell;
use std::path::Path;

/// All numbers that may be decoded from one file, however often they are referred to.
const MAX_NUMBERS: usize = 48 << 20;
/// The same for each byte that was read, beside [`SOME_NUMBERS`]: nodes may share meshes, and not without end.
const NUMBERS_PER_BYTE: usize = 16;
const SOME_NUMBERS: usize = 1 << 18;

/// Reads accessors of one file.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    path: &'a Path,
    container: &'a Container,
    most: usize,
    left: Cell<usize>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(path: &'a Path, container: &'a Container) -> Reader<'a> {
        let bytes = container.json.len() + container.buffers.iter().map(Vec::len).sum::<usize>();
        let most = (NUMBERS_PER_BYTE * bytes + SOME_NUMBERS).min(MAX_NUMBERS);
        Reader { path, container, most, left: Cell::new(most) }
    }

    fn bad(&self, accessor: usize, what: impl Into<String>) -> FileError {
        FileError::new("file/accessor", self.path, what, "export the file again").at(format!("accessors[{accessor}]"))
    }

    /// Takes room for this many numbers out of what the file may use.
    pub(crate) fn spend(&self, numbers: usize) -> Result<(), FileError> {
        let left = self.left.get().checked_sub(numbers);
        self.left.set(left.ok_or_else(|| {
            too_large(self.path, format!("its meshes and clips unfold to more than {} numbers", self.most))
        })?);
        Ok(())
    }

    /// The numbers of an accessor of one of these types, row after row. Integers are normalised when the accessor says so.
    pub(crate) fn floats(&self, index: usize, kinds: &[&str]) -> Result<Vec<f32>, FileError> {
        let accessor = self.accessor(index)?;
        if !kinds.contains(&accessor.kind.as_str()) {
            let what = format!("it is of type {}, and {} is needed", accessor.kind, kinds.join(" or "));
            return Err(self.bad(index, what));
        }
        let mut values = Vec::new();
        self.each(index, |value| values.push(value as f32))?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(FileError::new(
                "file/number",
                self.path,
                "a value is infinite or not a number",
                "export the file again",
            )
            .at(format!("accessors[{index}]")));
        }
        Ok(values)
    }

    /// Whole numbers, such as vertex or joint indices.
    pub(crate) fn indices(&self, index: usize, kind: &str) -> Result<Vec<u32>, FileError> {
        let accessor = self.accessor(index)?;
        if accessor.kind != kind || !matches!(accessor.component_type, 5121 | 5123 | 5125) {
            return Err(self.bad(index, format!("unsigned integers of type {kind} are needed")));
        }
        let mut values = Vec::new();
        self.each(index, |value| values.push(value as u32))?;
        Ok(values)
    }

    /// How many rows an accessor has.
    pub(crate) fn count(&self, index: usize) -> Result<usize, FileError> {
        Ok(self.accessor(index)?.count)
    }

    fn accessor(&self, index: usize) -> Result<&'a super::schema::Accessor, FileError> {
        let count = self.container.root.accessors.len();
        self.container.root.accessors.get(index).ok_or_else(|| {
            FileError::new(
                "file/reference",
                self.path,
                format!("there is no accessor {index}, only {count}"),
                "export the file again",
            )
            .at(format!("accessors[{index}]"))
        })
    }

    /// Calls `push` with each number.
    fn each(&self, index: usize, mut push: impl FnMut(f64)) -> Result<(), FileError> {
        let accessor = self.accessor(index)?;
        let width = match accessor.kind.as_str() {
            "SCALAR" => 1,
            "VEC2" => 2,
            "VEC3" => 3,
            "VEC4" => 4,
            "MAT4" => 16,
            _ => return Err(self.bad(index, format!("its type {} is not read here", accessor.kind))),
        };
        let Some(component) = Component::of(accessor.component_type) else {
            return Err(self.bad(index, format!("there is no component type {}", accessor.component_type)));
        };
        let numbers = accessor.count.checked_mul(width).ok_or_else(|| self.bad(index, "its count is too large"))?;
        self.spend(numbers)?;
        let row = width * component.size();
        let plain = match accessor.buffer_view {
            Some(view) => Some(self.rows(index, view, accessor.byte_offset, accessor.count, row)?),
            None => None,
        };
        let sparse = match &accessor.sparse {
            None => None,
            Some(sparse) => {
                let Some(kind) = Component::of(sparse.indices.component_type).filter(|c| c.is_index()) else {
                    return Err(self.bad(index, "its sparse indices are not unsigned integers"));
                };
                if sparse.count > accessor.count {
                    return Err(self.bad(index, "it has more sparse values than values"));
                }
                self.spend(2 * sparse.count)?;
                let at = self.rows(
                    index,
                    sparse.indices.buffer_view,
                    sparse.indices.byte_offset,
                    sparse.count,
                    kind.size(),
                )?;
                let values =
                    self.rows(index, sparse.values.buffer_view, sparse.values.byte_offset, sparse.count, row)?;
                let rows: Vec<usize> = (0..sparse.count).map(|k| kind.read(at.row(k)) as usize).collect();
                if !rows.is_sorted_by(|a, b| a < b) || rows.last().is_some_and(|last| *last >= accessor.count) {
                    return Err(self.bad(index, "its sparse indices do not rise within its count"));
                }
                Some((rows, values))
            }
        };
        let mut next = 0; // of the sparse rows
        for k in 0..accessor.count {
            let bytes = match &sparse {
                Some((rows, values)) if rows.get(next) == Some(&k) => {
                    next += 1;
                    Some(values.row(next - 1))
                }
                _ => plain.as_ref().map(|rows| rows.row(k)),
            };
            for i in 0..width {
                let value = bytes.map_or(0.0, |row| component.read(&row[i * component.size()..]));
                push(if accessor.normalized { component.normalise(value) } else { value });
            }
        }
        Ok(())
    }

    /// Rows of bytes in a view, all of them inside it.
    fn rows(&self, index: usize, view: usize, offset: usize, count: usize, row: usize) -> Result<Rows<'a>, FileError> {
        let root = &self.container.root;
        let Some(view) = root.buffer_views.get(view) else {
            return Err(self.bad(index, format!("there is no buffer view {view}")));
        };
        let Some(buffer) = self.container.buffers.get(view.buffer) else {
            return Err(self.bad(index, format!("there is no buffer {}", view.buffer)));
        };
        let end = view.byte_offset.checked_add(view.byte_length);
        let bytes = end.and_then(|end| buffer.get(view.byte_offset..end));
        let stride = view.byte_stride.unwrap_or(row).max(row);
        // offset + (count − 1) stride + row ≤ length
        let last = count.saturating_sub(1).checked_mul(stride).and_then(|n| n.checked_add(offset)?.checked_add(row));
        match (bytes, last) {
            (Some(bytes), Some(last)) if count == 0 || last <= bytes.len() => {
                Ok(Rows { bytes: bytes.get(offset..).unwrap_or_default(), stride, row })
            }
            _ => Err(self.bad(index, format!("its {count} rows reach beyond the buffer"))),
        }
    }
}

struct Rows<'a> {
    bytes: &'a [u8],
    stride: usize,
    row: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, k: usize) -> &'a [u8] {
        &self.bytes[k * self.stride..k * self.stride + self.row]
    }
}

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    I8,
    U8,
    I16,
    U16,
    U32,
    F32,
}

impl Component {
    fn of(code: u32) -> Option<Component> {
        Some(match code {
            5120 => Component::I8,
            5121 => Component::U8,
            5122 => Component::I16,
            5123 => Component::U16,
            5125 => Component::U32,
            5126 => Component::F32,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Component::I8 | Component::U8 => 1,
            Component::I16 | Component::U16 => 2,
            Component::U32 | Component::F32 => 4,
        }
    }

    fn is_index(self) -> bool {
        matches!(self, Component::U8 | Component::U16 | Component::U32)
    }

    /// The number at the beginning of the bytes, which are long enough.
    fn read(self, b: &[u8]) -> f64 {
        match self {
            Component::I8 => f64::from(b[0] as i8),
            Component::U8 => f64::from(b[0]),
            Component::I16 => f64::from(i16::from_le_bytes([b[0], b[1]])),
            Component::U16 => f64::from(u16::from_le_bytes([b[0], b[1]])),
            Component::U32 => f64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            Component::F32 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        }
    }

    /// Integers as fractions: `max(x / largest, −1)`.
    fn normalise(self, value: f64) -> f64 {
        match self {
            Component::I8 => (value / 127.0).max(-1.0),
            Component::U8 => value / 255.0,
            Component::I16 => (value / 32767.0).max(-1.0),
            Component::U16 => value / 65535.0,
            Component::U32 | Component::F32 => value,
        }
    }
}
