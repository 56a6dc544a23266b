//! Creatures: a closed, coloured, skinned surface grown over bones with radii.
//!
//! Each limb is a cone with round ends about a segment, as thick across as told; the distances to all limbs are blended so that they run into one
//! another, `d = −k ln Σ exp(−d_i/k)`, and the surface `d = 0` is polygonised: one vertex in each cell of a grid that it passes through, one
//! quadrilateral across each edge of the grid [surface nets]. The vertices are then spread along the surface.

mod nets;

use crate::flesh::SurfaceMesh;
use glam::DVec3;

/// A bone with its flesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Limb {
    /// The body it belongs to.
    pub body: String,
    /// Where the segment starts \[m\].
    pub from: DVec3,
    /// Where it ends \[m\].
    pub to: DVec3,
    /// Half thickness at the start \[m\].
    pub radius_from: f64,
    /// Half thickness at the end \[m\].
    pub radius_to: f64,
    /// Direction in which it is thicker or thinner than told by its radii.
    pub side: DVec3,
    /// Half thickness along `side` in units of the radius; 1 for a round limb.
    pub width: f64,
    /// Linear red, green and blue from 0 to 1.
    pub colour: [f32; 3],
}

impl Limb {
    /// A round limb of this body from one point to another.
    pub fn new(body: impl Into<String>, from: DVec3, to: DVec3, radius_from: f64, radius_to: f64) -> Limb {
        Limb {
            body: body.into(),
            from,
            to,
            radius_from,
            radius_to,
            side: DVec3::Z,
            width: 1.0,
            colour: [0.7, 0.6, 0.5],
        }
    }

    /// Thinner or thicker along a direction.
    pub fn flat(mut self, side: DVec3, width: f64) -> Limb {
        (self.side, self.width) = (side.normalize_or(DVec3::Z), width);
        self
    }

    /// In this colour.
    pub fn colour(mut self, colour: [f32; 3]) -> Limb {
        self.colour = colour;
        self
    }

    /// The place on the segment nearest to a point, from 0 to 1.
    fn nearest(&self, p: DVec3) -> f64 {
        let along = self.to - self.from;
        let size = along.length_squared();
        if size > 0.0 { ((p - self.from).dot(along) / size).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// About the distance to its surface, negative inside \[m\].
    fn distance(&self, p: DVec3) -> f64 {
        let t = self.nearest(p);
        let away = p - self.from.lerp(self.to, t);
        let across = away.dot(self.side);
        let round = away + self.side * (across / self.width - across);
        (round.length() - (self.radius_from + t * (self.radius_to - self.radius_from))) * self.width.min(1.0)
    }

    fn thickest(&self) -> f64 {
        self.radius_from.max(self.radius_to) * self.width.max(1.0)
    }
}

/// As many limbs are measured without setting room aside.
const FEW: usize = 64;
/// exp of less is lost beside 1.
const LEAST_EXPONENT: f64 = -40.0;

/// Limbs that run into one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Creature {
    /// At least one.
    pub limbs: Vec<Limb>,
    /// Over what distance limbs run into one another, k \[m\].
    pub blend: f64,
}

/// A surface with what each vertex follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skin {
    /// Closed, turned outwards.
    pub surface: SurfaceMesh,
    /// For each vertex up to four limbs with their shares, the largest first; the shares add up to 1.
    pub weights: Vec<[(u32, f64); 4]>,
}

impl Creature {
    /// About the distance to the surface, negative inside \[m\].
    pub fn distance(&self, p: DVec3) -> f64 {
        // From the nearest limb, so that no exponential overflows; what is far from it adds nothing
        let mut few = [f64::INFINITY; FEW];
        let mut many = Vec::new();
        let all: &mut [f64] = if self.limbs.len() <= FEW {
            &mut few[..self.limbs.len()]
        } else {
            many.resize(self.limbs.len(), f64::INFINITY);
            &mut many
        };
        all.iter_mut().zip(&self.limbs).for_each(|(d, limb)| *d = limb.distance(p));
        let nearest = all.iter().copied().fold(f64::INFINITY, f64::min);
        let sum: f64 =
            all.iter().map(|d| (nearest - d) / self.blend).filter(|x| *x > LEAST_EXPONENT).map(f64::exp).sum();
        nearest - self.blend * sum.ln()
    }

    /// The surface with vertices about so far apart along X, Y and Z \[m\], or what is wrong.
    pub fn grow(&self, spacing: DVec3) -> Result<Skin, String> {
        if self.limbs.is_empty() {
            return Err("it has no limb".into());
        }
        for limb in &self.limbs {
            let numbers = [limb.radius_from, limb.radius_to, limb.width];
            if !(limb.from.is_finite() && limb.to.is_finite() && numbers.iter().all(|x| x.is_finite() && *x > 0.0)) {
                return Err(format!(
                    "a limb of \"{}\" has a radius or width that is not above 0, or an end that is not finite",
                    limb.body
                ));
            }
        }
        if !(spacing.is_finite() && spacing.min_element() > 0.0 && self.blend.is_finite() && self.blend > 0.0) {
            return Err(format!("its spacing {spacing} m and blend {} m must be above 0", self.blend));
        }
        let reach =
            self.limbs.iter().map(Limb::thickest).fold(0.0, f64::max) + self.blend * (self.limbs.len() as f64).ln();
        let ends = || self.limbs.iter().flat_map(|limb| [limb.from, limb.to]);
        let low = ends().fold(DVec3::INFINITY, DVec3::min) - DVec3::splat(reach);
        let high = ends().fold(DVec3::NEG_INFINITY, DVec3::max) + DVec3::splat(reach);
        let mut surface = nets::polygonise(low, high, spacing, &|p| self.distance(p))?;
        surface.colours = surface.vertices.iter().map(|&p| self.colour(p, spacing.min_element())).collect();
        let weights = surface.vertices.iter().map(|&p| self.weights(p)).collect();
        Ok(Skin { surface, weights })
    }

    /// Colours run into one another as the limbs do, over at least the spacing of vertices.
    fn colour(&self, p: DVec3, spacing: f64) -> [f32; 3] {
        let nearest = self.limbs.iter().map(|limb| limb.distance(p)).fold(f64::INFINITY, f64::min);
        let (mut sum, mut mixed) = (0.0, [0.0; 3]);
        for limb in &self.limbs {
            let share = ((nearest - limb.distance(p)) / self.blend.max(0.25 * spacing)).exp();
            sum += share;
            (0..3).for_each(|k| mixed[k] += share * f64::from(limb.colour[k]));
        }
        mixed.map(|x| (x / sum) as f32)
    }

    /// Shares fall off with the distance to a limb's segment, in units of its thickness.
    fn weights(&self, p: DVec3) -> [(u32, f64); 4] {
        let mut all: Vec<(u32, f64)> = Vec::with_capacity(self.limbs.len());
        for (k, limb) in self.limbs.iter().enumerate() {
            let away = p.distance(limb.from.lerp(limb.to, limb.nearest(p))) / limb.thickest();
            all.push((k as u32, (1.0 + away.powi(8)).recip()));
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut out = [(0, 0.0); 4];
        let kept = all.len().min(4);
        let sum: f64 = all[..kept].iter().map(|(_, w)| w).sum();
        (0..kept).for_each(|i| out[i] = (all[i].0, all[i].1 / sum));
        out
    }
}
