//! Light: a sun of some width and the sky, both as many lamps, each with the heights at which it first meets the figure. Where only
//! some lamps are hidden lies half-shadow: narrow where a part touches the ground, wide where it is far from it.

use super::raster::{Surface, Vertex, Window, scan, snap};
use crate::cores::on_all_cores;
use std::f32::consts::TAU;
use supple::glam::{Vec2, Vec3};

/// Light from one direction.
#[derive(Clone, Copy, Debug)]
struct Lamp {
    /// Unit vector towards it.
    towards: Vec3,
    /// What a surface that faces it receives.
    colour: Vec3,
    /// Cells of its map along the longer side.
    cells: usize,
}

/// Lamps with what hides them, and what comes back from the ground.
#[derive(Debug)]
pub(super) struct Light {
    shadows: Vec<(Lamp, Shadow)>,
    /// The middle of the sun.
    pub(super) sun: Vec3,
    /// Light from below.
    bounce: Vec3,
    below: Below,
}

/// How bright sun, sky and ground are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brightness {
    /// What the ground receives from the sun.
    pub(super) sun: Vec3,
    /// What the ground receives from the sky.
    pub(super) sky: Vec3,
    /// What a surface that looks down receives from the ground.
    pub(super) bounce: Vec3,
}

/// What a place receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Received {
    pub(super) light: Vec3,
    /// Share of the sun that is seen.
    pub(super) sun: f32,
}

/// Lamps of the sun, and its radius \[rad\].
const SUN_LAMPS: usize = 32;
const SUN_RADIUS: f32 = 0.032;
const SKY_LAMPS: usize = 40;
/// Cells of a map of the sun and of the sky along its longer side: at most, at least, and per pixel of the picture.
const SUN_CELLS: [f32; 3] = [480.0, 96.0, 0.6];
const SKY_CELLS: [f32; 3] = [256.0, 64.0, 0.3];
/// From one lamp to the next \[turns\]: the golden section leaves no gaps.
const GOLDEN: f32 = 0.618_034;

impl Light {
    /// Light on what throws shadows, fine enough for a picture of so many pixels along a side; `sun` is the direction towards the
    /// sun, `ground` the height of the ground \[m\].
    pub(super) fn new(sun: Vec3, brightness: Brightness, casters: &Surface, ground: f32, pixels: usize) -> Light {
        let [sun_cells, sky_cells] =
            [SUN_CELLS, SKY_CELLS].map(|[most, least, share]| (share * pixels as f32).clamp(least, most) as usize);
        let (side, up) = sun.any_orthonormal_pair();
        let around = |k: usize| {
            let (sin, cos) = (TAU * GOLDEN * k as f32).sin_cos();
            Vec2::new(cos, sin)
        };
        let mut lamps = Vec::with_capacity(SUN_LAMPS + SKY_LAMPS);
        for k in 0..SUN_LAMPS {
            // Evenly over a disc.
            let offset = around(k) * (SUN_RADIUS * ((k as f32 + 0.5) / SUN_LAMPS as f32).sqrt());
            let towards = (sun + side * offset.x + up * offset.y).normalize();
            let colour = brightness.sun / (SUN_LAMPS as f32 * sun.y);
            lamps.push(Lamp { towards, colour, cells: sun_cells });
        }
        for k in 0..SKY_LAMPS {
            // Evenly over the half sphere: the ground receives Σ y = 1/2 of it.
            let y = (k as f32 + 0.5) / SKY_LAMPS as f32;
            let level = around(k) * (1.0 - y * y).sqrt();
            let towards = Vec3::new(level.x, y, level.y);
            lamps.push(Lamp { towards, colour: brightness.sky * (2.0 / SKY_LAMPS as f32), cells: sky_cells });
        }
        let shadows = on_all_cores(&lamps, |lamp| (*lamp, Shadow::new(lamp, casters)));
        let mut light = Light { shadows, sun, bounce: brightness.bounce, below: Below::default() };
        light.below = Below::new(&light, casters, ground);
        light
    }

    /// What a surface receives at a place.
    pub(super) fn received(&self, position: Vec3, normal: Vec3) -> Received {
        self.gather(normal, |shadow, towards| shadow.lit(position, normal, towards))
    }

    /// What a surface would receive if nothing threw a shadow.
    pub(super) fn unhidden(&self, normal: Vec3) -> Received {
        self.gather(normal, |_, _| 1.0)
    }

    /// What the ground receives at a place: the sky, and the sun but for its lamps that are hidden there.
    pub(super) fn on_ground(&self, position: Vec3) -> Vec3 {
        let Some((square, within)) = self.below.square(position) else { return self.below.open };
        let mut light = self.below.open * self.below.sky(square, within);
        let mut lamps = self.below.suns[square[1] * SQUARES + square[0]];
        while lamps != 0 {
            let (lamp, shadow) = &self.shadows[lamps.trailing_zeros() as usize];
            light -= lamp.colour * (lamp.towards.y * (1.0 - shadow.lit(position, Vec3::Y, lamp.towards)));
            lamps &= lamps - 1;
        }
        light
    }

    fn gather(&self, normal: Vec3, lit: impl Fn(&Shadow, Vec3) -> f32) -> Received {
        let (mut light, mut sun) = (self.bounce * (0.5 - 0.5 * normal.y), 0.0);
        for (k, (lamp, shadow)) in self.shadows.iter().enumerate() {
            let cosine = normal.dot(lamp.towards);
            if cosine > 0.0 {
                let lit = lit(shadow, lamp.towards);
                light += lamp.colour * (cosine * lit);
                if k < SUN_LAMPS {
                    sun += lit / SUN_LAMPS as f32;
                }
            }
        }
        Received { light, sun }
    }
}

/// The ground around the figure in squares.
#[derive(Debug, Default)]
struct Below {
    /// What it receives far away.
    open: Vec3,
    /// Where the squares begin \[m\].
    min: Vec2,
    /// Squares per metre.
    scale: f32,
    /// Which lamps of the sun may be hidden in each square, a bit for each, row by row.
    suns: Vec<u32>,
    /// What is left of the sky's light at the corners of the squares, smoothed.
    sky: Vec<Vec3>,
}

/// Squares along each side.
const SQUARES: usize = 96;
/// How far the squares reach beyond the figure, in its sizes.
const BEYOND: f32 = 1.2;
/// Passes and reach of the smoothing, in squares: as many lamps as there are would else be seen one by one.
const SMOOTHINGS: usize = 3;
const SMOOTHING: usize = 2;
const _: () = assert!(SUN_LAMPS <= u32::BITS as usize);

impl Below {
    fn new(light: &Light, casters: &Surface, ground: f32) -> Below {
        let open = light.unhidden(Vec3::Y).light;
        let level = |p: Vec3| Vec2::new(p.x, p.z);
        let low = casters.vertices.iter().map(|v| level(v.position)).fold(Vec2::INFINITY, Vec2::min);
        let high = casters.vertices.iter().map(|v| level(v.position)).fold(Vec2::NEG_INFINITY, Vec2::max);
        let tall = casters.vertices.iter().map(|v| v.position.y - ground).fold(0.0, f32::max);
        let size = (high - low).max_element().max(tall);
        let reach = 0.5 * size + BEYOND * size;
        let scale = 0.5 * SQUARES as f32 / reach;
        if !(scale.is_finite() && low.is_finite() && scale > 0.0) {
            return Below { open, ..Below::default() };
        }
        let min = 0.5 * (low + high) - Vec2::splat(reach);
        let mut below = Below { open, min, scale, suns: vec![0; SQUARES * SQUARES], sky: Vec::new() };

        for (k, (lamp, shadow)) in light.shadows[..SUN_LAMPS].iter().enumerate() {
            // The box on the ground that holds the lamp's shadow, with a rim for its soft edge.
            let rim = Vec2::splat(4.0 * shadow.cell / lamp.towards.y);
            let thrown = |v: &Vertex| level(v.position - lamp.towards * ((v.position.y - ground) / lamp.towards.y));
            let ends = casters.vertices.iter().map(thrown);
            let [low, high] = ends.fold([Vec2::INFINITY, Vec2::NEG_INFINITY], |[l, h], p| [l.min(p), h.max(p)]);
            let last = Vec2::splat(SQUARES as f32 - 1.0);
            let [from, to] = [low - rim, high + rim].map(|p| ((p - min) * scale).clamp(Vec2::ZERO, last));
            for row in from.y as usize..=to.y as usize {
                for column in from.x as usize..=to.x as usize {
                    below.suns[row * SQUARES + column] |= 1 << k;
                }
            }
        }

        let rows: Vec<usize> = (0..=SQUARES).collect();
        let hidden = on_all_cores(&rows, |&row| {
            let place = |column: usize| min + Vec2::new(column as f32, row as f32) / scale;
            let lost = |column: usize| {
                let at = Vec3::new(place(column).x, ground, place(column).y);
                let lamps = light.shadows[SUN_LAMPS..].iter();
                lamps
                    .map(|(lamp, shadow)| {
                        lamp.colour * (lamp.towards.y * (1.0 - shadow.lit(at, Vec3::Y, lamp.towards)))
                    })
                    .sum()
            };
            (0..=SQUARES).map(lost).collect::<Vec<Vec3>>()
        });
        let mut hidden: Vec<Vec3> = hidden.into_iter().flatten().collect();
        for _ in 0..SMOOTHINGS {
            hidden = smooth(&hidden);
        }
        below.sky = hidden.into_iter().map(|lost| Vec3::ONE - lost / open).collect();
        below
    }

    /// The square of a place and where it lies in it.
    fn square(&self, position: Vec3) -> Option<([usize; 2], Vec2)> {
        let place = (Vec2::new(position.x, position.z) - self.min) * self.scale;
        let inside = place.cmpge(Vec2::ZERO).all() && place.cmplt(Vec2::splat(SQUARES as f32)).all();
        (inside && !self.sky.is_empty()).then(|| ([place.x as usize, place.y as usize], place.fract()))
    }

    /// What is left of the light but for the sun, between the four corners of a square.
    fn sky(&self, [column, row]: [usize; 2], within: Vec2) -> Vec3 {
        let at = |c: usize, r: usize| self.sky[(row + r) * (SQUARES + 1) + column + c];
        at(0, 0).lerp(at(1, 0), within.x).lerp(at(0, 1).lerp(at(1, 1), within.x), within.y)
    }
}

/// Every corner the mean of those around it, along rows and then along columns; beyond the squares nothing is hidden.
fn smooth(values: &[Vec3]) -> Vec<Vec3> {
    let side = SQUARES + 1;
    let along = |values: &[Vec3]| -> Vec<Vec3> {
        let mean = |k: usize| {
            let (row, column) = (k / side, k % side);
            let reach = column.saturating_sub(SMOOTHING)..(column + SMOOTHING + 1).min(side);
            values[row * side..][reach].iter().sum::<Vec3>() / (2 * SMOOTHING + 1) as f32
        };
        // Written column by column: the second time brings rows back.
        (0..side * side).map(|k| mean(k % side * side + k / side)).collect()
    };
    along(&along(values))
}

/// The heights towards a lamp at which it first meets something.
#[derive(Debug)]
struct Shadow {
    /// Axes across the light.
    x: Vec3,
    y: Vec3,
    /// Where the map begins \[m\].
    min: Vec2,
    /// Of a cell \[m\].
    cell: f32,
    columns: usize,
    rows: usize,
    /// Row by row \[m\]; −∞ where the light meets nothing.
    heights: Vec<f32>,
}

/// Cells around what throws the shadow.
const RIM: f32 = 3.0;

impl Shadow {
    fn new(lamp: &Lamp, casters: &Surface) -> Shadow {
        let (x, y) = lamp.towards.any_orthonormal_pair();
        let across: Vec<Vec3> = casters
            .vertices
            .iter()
            .map(|v| Vec3::new(v.position.dot(x), v.position.dot(y), v.position.dot(lamp.towards)))
            .collect();
        let low = across.iter().copied().fold(Vec3::INFINITY, Vec3::min);
        let high = across.iter().copied().fold(Vec3::NEG_INFINITY, Vec3::max);
        let size = (high - low).truncate();
        if across.is_empty() || !size.is_finite() || size.max_element() <= 0.0 {
            return Shadow { x, y, min: Vec2::ZERO, cell: 1.0, columns: 0, rows: 0, heights: Vec::new() };
        }
        let cell = size.max_element() / (lamp.cells as f32 - 2.0 * RIM);
        let [columns, rows] = (size / cell + Vec2::splat(2.0 * RIM)).ceil().to_array().map(|n| n as usize);
        let min = low.truncate() - Vec2::splat(RIM * cell);

        let mut heights = vec![f32::NEG_INFINITY; columns * rows];
        let window = Window { min: [0, 0], max: [columns, rows] };
        let corners: Vec<[i64; 2]> =
            across.iter().map(|p| (p.truncate() - min) / cell).map(|p| snap(p.x, p.y)).collect();
        for facet in &casters.facets {
            let [a, b, c] = facet.corners.map(|i| i as usize);
            let tall = [across[a].z, across[b].z, across[c].z];
            scan([corners[a], corners[b], corners[c]], &[[128, 128]], window, |[column, row], _, weights| {
                let height = weights[0] * tall[0] + weights[1] * tall[1] + weights[2] * tall[2];
                let known = &mut heights[row * columns + column];
                *known = known.max(height);
            });
        }
        Shadow { x, y, min, cell, columns, rows, heights }
    }

    /// The share of the lamp that a place sees: of the nine cells around it, by a quadratic spline.
    ///
    /// The place is moved off its surface. A cell may lie two cells away, where the surface is higher by `2 cell · tan θ`, θ the angle
    /// between light and normal; moved by `m` along the normal, the place is higher by `m / cos θ`: enough when `m ≥ 2 cell · sin θ`.
    fn lit(&self, position: Vec3, normal: Vec3, towards: Vec3) -> f32 {
        let place = position + normal * (2.0 * self.cell);
        let u = (place.dot(self.x) - self.min.x) / self.cell;
        let v = (place.dot(self.y) - self.min.y) / self.cell;
        if !(u >= 1.0 && v >= 1.0 && u < self.columns as f32 - 1.0 && v < self.rows as f32 - 1.0) {
            return 1.0; // beside the map
        }
        let (column, row) = (u as usize, v as usize);
        let across = spline(u - column as f32 - 0.5);
        let down = spline(v - row as f32 - 0.5);
        let height = place.dot(towards);
        let mut lit = 0.0;
        for (k, share) in down.into_iter().enumerate() {
            let line = &self.heights[(row + k - 1) * self.columns + column - 1..][..3];
            for (known, part) in line.iter().zip(across) {
                if *known <= height {
                    lit += share * part;
                }
            }
        }
        lit
    }
}

/// Shares of the cells before, at and after a place that is `f` from the middle of its cell.
fn spline(f: f32) -> [f32; 3] {
    [0.5 * (0.5 - f) * (0.5 - f), 0.75 - f * f, 0.5 * (0.5 + f) * (0.5 + f)]
}

#[cfg(test)]
mod tests {
    use super::super::raster::Facet;
    use super::*;

    const BRIGHTNESS: Brightness =
        Brightness { sun: Vec3::splat(0.6), sky: Vec3::splat(0.4), bounce: Vec3::splat(0.2) };

    /// A square of 2 m at a height.
    fn square(height: f32) -> Surface {
        let corners = [[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]];
        let vertex = |[x, z]: [f32; 2]| Vertex { position: Vec3::new(x, height, z), normal: Vec3::Y };
        let facets = [[0, 1, 2], [0, 2, 3]].map(|corners| Facet { corners, part: 0 });
        Surface { vertices: corners.map(vertex).to_vec(), facets: facets.to_vec(), coated: Vec::new() }
    }

    #[test]
    fn open_ground_receives_sun_and_sky() {
        let light = Light::new(Vec3::new(0.3, 0.9, 0.2).normalize(), BRIGHTNESS, &square(1.0), 0.0, 800);
        // The lamps of the sun are not all as high as its middle: 0.1 % of it.
        let far = light.on_ground(Vec3::new(40.0, 0.0, 0.0));
        assert!((far - Vec3::ONE).abs().max_element() < 2e-3, "{far}");
        let above = light.received(Vec3::new(0.0, 1.0, 0.0), Vec3::Y);
        assert!((above.light - Vec3::ONE).abs().max_element() < 2e-3, "no shadow of its own: {above:?}");
        assert!((above.sun - 1.0).abs() < 1e-5);
    }

    #[test]
    fn shadows_are_dark_in_the_middle_and_soft_at_their_edge() {
        let light = Light::new(Vec3::Y, BRIGHTNESS, &square(1.0), 0.0, 800);
        let at = |x: f32| light.on_ground(Vec3::new(x, 0.0, 0.0)).x;
        // Below the middle no sun is seen, and of the sky only what comes in below 45°: less than half.
        assert!((0.05..0.25).contains(&at(0.0)), "{}", at(0.0));
        // The edge of the sun's shadow is 2 · 0.032 m wide at 1 m, and the map adds its cells.
        assert!(
            at(0.9) < at(0.98) && at(0.98) < at(1.02) && at(1.02) < at(1.1),
            "{:?}",
            [0.9, 0.98, 1.02, 1.1].map(at)
        );
        assert!(at(1.1) - at(0.9) > 0.5, "all of the sun lies between");
        let sharp = Light::new(Vec3::Y, BRIGHTNESS, &square(0.1), 0.0, 800);
        let near = |x: f32| sharp.on_ground(Vec3::new(x, 0.0, 0.0)).x;
        assert!(near(1.02) - near(0.98) > at(1.02) - at(0.98), "nearer to the ground, the edge is sharper");
        // The ground below agrees with a surface that lies there, but for the smoothing of the sky.
        let lying = light.received(Vec3::ZERO, Vec3::Y).light.x;
        assert!((lying - at(0.0)).abs() < 0.05, "{lying} {}", at(0.0));
    }

    #[test]
    fn nothing_throws_no_shadow() {
        let light = Light::new(Vec3::Y, BRIGHTNESS, &Surface::default(), 0.0, 800);
        assert_eq!(light.on_ground(Vec3::ZERO), light.unhidden(Vec3::Y).light);
    }
}
