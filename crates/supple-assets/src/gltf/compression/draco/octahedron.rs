//! Unit vectors as points of an octahedron that is unfolded onto a square.

use super::bits::Broken;

#[derive(Clone, Copy, Debug)]
pub(super) struct Octahedron {
    /// The largest coordinate, which is even.
    most: i32,
    centre: i32,
}

impl Octahedron {
    pub(super) fn new(bits: u8) -> Result<Octahedron, Broken> {
        if !(2..=30).contains(&bits) {
            return Err("normals have an impossible count of bits");
        }
        let most = (1 << bits) - 2;
        Ok(Octahedron { most, centre: most / 2 })
    }

    /// The unit vector at a place of the square.
    pub(super) fn unit(&self, s: i32, t: i32) -> [f32; 3] {
        let scale = 2.0 / self.most as f32;
        let (mut y, mut z) = (s as f32 * scale - 1.0, t as f32 * scale - 1.0);
        let x = 1.0 - y.abs() - z.abs();
        // Corners of the square are folded back.
        let fold = (-x).max(0.0);
        y += if y < 0.0 { fold } else { -fold };
        z += if z < 0.0 { fold } else { -fold };
        let size = x * x + y * y + z * z;
        if size < 1e-6 { [0.0; 3] } else { [x, y, z].map(|c| c / size.sqrt()) }
    }

    /// The place of a vector of any length, or of the opposite one.
    pub(super) fn of_vector(&self, vector: [i64; 3], flip: bool) -> [i32; 2] {
        let size = vector.iter().fold(0i64, |size, x| size.saturating_add(x.saturating_abs()));
        let centre = i64::from(self.centre);
        let mut v = [centre, 0, 0];
        if size > 0 {
            v[0] = vector[0].saturating_mul(centre) / size;
            v[1] = vector[1].saturating_mul(centre) / size;
            let rest = centre - v[0].abs() - v[1].abs();
            v[2] = if vector[2] >= 0 { rest } else { -rest };
        }
        if flip {
            v = v.map(|x| -x);
        }
        let most = i64::from(self.most);
        let (s, t) = if v[0] >= 0 {
            (v[1] + centre, v[2] + centre)
        } else {
            let s = if v[1] < 0 { v[2].abs() } else { most - v[2].abs() };
            let t = if v[2] < 0 { v[1].abs() } else { most - v[1].abs() };
            (s, t)
        };
        let (s, t) = match (s, t) {
            (0, 0) => (most, most),
            (0, t) if t == most => (most, most),
            (s, 0) if s == most => (most, most),
            (0, t) if t > centre => (0, 2 * centre - t),
            (s, t) if s == most && t < centre => (s, 2 * centre - t),
            (s, t) if t == most && s < centre => (2 * centre - s, t),
            (s, 0) if s > centre => (2 * centre - s, 0),
            other => other,
        };
        [s as i32, t as i32]
    }

    /// The place that a prediction and its correction mean: corrections are told in the lower left quarter of the inner diamond.
    pub(super) fn corrected(&self, predicted: [i32; 2], correction: [i32; 2]) -> [i32; 2] {
        let c = self.centre;
        let mut p = predicted.map(|x| x.wrapping_sub(c));
        let inside = i64::from(p[0]).abs() + i64::from(p[1]).abs() <= i64::from(c);
        if !inside {
            p = self.turned_out(p);
        }
        let at_home = p == [0, 0] || (p[0] < 0 && p[1] <= 0);
        let turns = match (p[0].signum(), p[1].signum()) {
            (0, 0) => 0,
            (0, 1) => 3,
            (0, _) => 1,
            (1, 0 | 1) => 2,
            (1, _) => 1,
            (_, 1) => 3,
            _ => 0,
        };
        if !at_home {
            p = rotated(p, turns);
        }
        let mut v: [i32; 2] = std::array::from_fn(|k| self.round(p[k].wrapping_add(correction[k])));
        if !at_home {
            v = rotated(v, (4 - turns) % 4);
        }
        if !inside {
            v = self.turned_out(v);
        }
        v.map(|x| x.wrapping_add(c))
    }

    fn round(&self, x: i32) -> i32 {
        let all = self.most + 1;
        if x > self.centre {
            x.wrapping_sub(all)
        } else if x < -self.centre {
            x.wrapping_add(all)
        } else {
            x
        }
    }

    /// Swaps the inner diamond with the corners around it.
    fn turned_out(&self, [s, t]: [i32; 2]) -> [i32; 2] {
        let sign = |x: i32| if x > 0 { 1 } else { -1 };
        let (a, b) = if s >= 0 && t >= 0 { (1, 1) } else { (sign(s), sign(t)) };
        let (x, y) = (a * self.centre, b * self.centre);
        let (mut u, mut v) = (s.wrapping_mul(2).wrapping_sub(x), t.wrapping_mul(2).wrapping_sub(y));
        (u, v) = if a * b >= 0 { (v.wrapping_neg(), u.wrapping_neg()) } else { (v, u) };
        [u.wrapping_add(x) / 2, v.wrapping_add(y) / 2]
    }
}

fn rotated([x, y]: [i32; 2], quarters: i32) -> [i32; 2] {
    match quarters {
        1 => [y, x.wrapping_neg()],
        2 => [x.wrapping_neg(), y.wrapping_neg()],
        3 => [y.wrapping_neg(), x],
        _ => [x, y],
    }
}
