//! Triangles by their corners: which corner lies opposite to which, and whose vertex it is. Corners 3 f, 3 f + 1, 3 f + 2 are those of face f.

use super::bits::Broken;

/// No corner, no vertex.
pub(super) const NONE: u32 = u32::MAX;

pub(super) fn next(corner: u32) -> u32 {
    if corner % 3 == 2 { corner - 2 } else { corner + 1 }
}

pub(super) fn previous(corner: u32) -> u32 {
    if corner.is_multiple_of(3) { corner + 2 } else { corner - 1 }
}

/// Corners and what lies across from them; seams of attributes are edges with nothing across.
#[derive(Clone, Debug, Default)]
pub(super) struct Corners {
    /// By corner: the one across the edge that it faces.
    pub(super) opposite: Vec<u32>,
    /// By corner.
    pub(super) vertex: Vec<u32>,
    /// By vertex: the corner from which all others are reached by turning right.
    pub(super) leftmost: Vec<u32>,
}

impl Corners {
    pub(super) fn new(faces: usize) -> Corners {
        Corners { opposite: vec![NONE; 3 * faces], vertex: vec![NONE; 3 * faces], leftmost: Vec::new() }
    }

    pub(super) fn faces(&self) -> usize {
        self.vertex.len() / 3
    }

    pub(super) fn across(&self, corner: u32) -> u32 {
        if corner == NONE { NONE } else { self.opposite[corner as usize] }
    }

    pub(super) fn join(&mut self, a: u32, b: u32) {
        (self.opposite[a as usize], self.opposite[b as usize]) = (b, a);
    }

    pub(super) fn vertex(&self, corner: u32) -> u32 {
        self.vertex[corner as usize]
    }

    pub(super) fn left(&self, corner: u32) -> u32 {
        let across = self.across(next(corner));
        if across == NONE { NONE } else { next(across) }
    }

    pub(super) fn right(&self, corner: u32) -> u32 {
        let across = self.across(previous(corner));
        if across == NONE { NONE } else { previous(across) }
    }

    /// A vertex at the end of a face that is open on its left.
    pub(super) fn is_at_border(&self, vertex: u32) -> bool {
        let corner = self.leftmost[vertex as usize];
        corner == NONE || self.left(corner) == NONE
    }

    /// The corners of a vertex, from this one to the left, then to the right of it; each once.
    pub(super) fn around(&self, start: u32) -> Around<'_> {
        Around { corners: self, start, at: start, is_left: true, steps: 0 }
    }

    /// The same triangles with vertices of their own along seams. `is_seam`: by corner, whether the edge that it faces is one.
    pub(super) fn cut(&self, is_seam: &[bool]) -> Result<Corners, Broken> {
        let mut cut = Corners { opposite: self.opposite.clone(), ..Corners::new(self.faces()) };
        let mut at_seam = vec![false; self.leftmost.len()];
        for corner in 0..self.vertex.len() as u32 {
            if is_seam[corner as usize] {
                let across = std::mem::replace(&mut cut.opposite[corner as usize], NONE);
                for side in [corner, across].into_iter().filter(|side| *side != NONE) {
                    at_seam[self.vertex(next(side)) as usize] = true;
                    at_seam[self.vertex(previous(side)) as usize] = true;
                }
                if across != NONE {
                    cut.opposite[across as usize] = NONE;
                }
            }
        }
        let most = self.vertex.len();
        for (vertex, &start) in self.leftmost.iter().enumerate() {
            if start == NONE {
                continue;
            }
            let mut first = start;
            if at_seam[vertex] {
                for _ in 0..=most {
                    match cut.left(first) {
                        NONE => break,
                        left if left == start => return Err("a seam of an attribute has no end"),
                        left => first = left,
                    }
                }
            }
            let mut corner = first;
            cut.leftmost.push(first);
            for _ in 0..=most {
                cut.vertex[corner as usize] = cut.leftmost.len() as u32 - 1;
                corner = self.right(corner);
                if corner == NONE || corner == first {
                    break;
                }
                if cut.opposite[next(corner) as usize] == NONE && self.opposite[next(corner) as usize] != NONE {
                    cut.leftmost.push(corner);
                }
            }
        }
        if cut.vertex.contains(&NONE) {
            return Err("a corner has no vertex");
        }
        Ok(cut)
    }
}

/// See [`Corners::around`].
pub(super) struct Around<'c> {
    corners: &'c Corners,
    start: u32,
    at: u32,
    is_left: bool,
    steps: usize,
}

impl Iterator for Around<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // More corners than there are: a table that goes in a circle without its start.
        if self.at == NONE || self.steps > self.corners.vertex.len() {
            return None;
        }
        let this = self.at;
        self.steps += 1;
        self.at = if self.is_left { self.corners.left(this) } else { self.corners.right(this) };
        if self.is_left && self.at == NONE {
            self.is_left = false;
            self.at = self.corners.right(self.start);
        } else if self.at == self.start {
            self.at = NONE;
        }
        Some(this)
    }
}
