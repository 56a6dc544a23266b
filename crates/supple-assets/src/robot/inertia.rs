//! Mass, centre and inertia of a link: moved, added, and mended where no body could have them.

use glam::{DMat3, DVec3};
use supple::maths::rotation::turned_inertia;
use supple::maths::singular::eigen;
use supple::{Pose, Shape};

/// Mass, centre of mass and inertia.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inertial {
    /// \[kg\]
    pub mass: f64,
    /// In link coordinates \[m\].
    pub centre: DVec3,
    /// About the centre, in link axes \[kg·m²\].
    pub inertia: DMat3,
}

/// What had to be mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mended {
    /// A moment was zero or negative, or one was more than the sum of the others.
    Moments,
    /// There was no inertia at all.
    Missing,
}

impl Inertial {
    /// Nothing.
    pub const NONE: Inertial = Inertial { mass: 0.0, centre: DVec3::ZERO, inertia: DMat3::ZERO };

    /// Of a solid of this mass.
    pub fn of_shape(shape: &Shape, mass: f64) -> Option<Inertial> {
        let solid = shape.solid().ok()?;
        Some(Inertial { mass, centre: solid.centre, inertia: solid.inertia * (mass / solid.volume) })
    }

    /// The same in coordinates in which the link lies at `place`.
    pub fn moved(&self, place: Pose) -> Inertial {
        Inertial {
            mass: self.mass,
            centre: place.transform_point(self.centre),
            inertia: turned_inertia(place.rotation, self.inertia),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Inertial) -> Inertial {
        let mass = self.mass + other.mass;
        if mass <= 0.0 {
            return Inertial { mass, centre: self.centre, inertia: self.inertia + other.inertia };
        }
        let centre = (self.centre * self.mass + other.centre * other.mass) / mass;
        // I = Σ I_i + m_i (|d|² 1 − d dᵀ), d from the common centre
        let about = |part: &Inertial| part.inertia + point_inertia(part.centre - centre, part.mass);
        Inertial { mass, centre, inertia: about(self) + about(other) }
    }

    /// Multiplied.
    pub fn scaled(&self, factor: f64) -> Inertial {
        Inertial { mass: self.mass * factor, centre: self.centre, inertia: self.inertia * factor }
    }

    /// With principal moments of at least `least` \[kg·m²\].
    pub(crate) fn bounded(&self, least: f64) -> Inertial {
        let (values, axes) = eigen(self.inertia);
        if least <= 0.0 || values.min_element() >= least {
            return *self;
        }
        let inertia = axes * DMat3::from_diagonal(values.max(DVec3::splat(least))) * axes.transpose();
        Inertial { inertia: (inertia + inertia.transpose()) * 0.5, ..*self }
    }

    /// With the mean of its moments about every axis.
    pub(crate) fn balanced(&self) -> Inertial {
        let trace = self.inertia.x_axis.x + self.inertia.y_axis.y + self.inertia.z_axis.z;
        Inertial { inertia: DMat3::from_diagonal(DVec3::splat(trace / 3.0)), ..*self }
    }

    /// An inertia that a body can have, as near as may be to this one, and what was wrong.
    ///
    /// With the second moments `C = ½ tr(I) 1 − I` a body has no negative eigenvalue of `C`; those that are become a millionth of the
    /// largest. Where nothing is left the body is a ball of a density of water.
    pub(crate) fn mended(&self) -> (Inertial, Option<Mended>) {
        let trace = self.inertia.x_axis.x + self.inertia.y_axis.y + self.inertia.z_axis.z;
        if !(trace > 0.0 && trace.is_finite()) {
            let radius = (self.mass / 1000.0 * 0.75 / std::f64::consts::PI).cbrt();
            let inertia = DMat3::from_diagonal(DVec3::splat(0.4 * self.mass * radius * radius));
            return (Inertial { inertia, ..*self }, Some(Mended::Missing));
        }
        let second = DMat3::from_diagonal(DVec3::splat(0.5 * trace)) - (self.inertia + self.inertia.transpose()) * 0.5;
        let (values, axes) = eigen(second);
        let largest = values.x.max(values.y).max(values.z);
        if values.min_element() >= -1e-10 * trace && trace_of_two_smallest(values) > 1e-12 * trace {
            return (*self, None);
        }
        let values = values.max(DVec3::splat(1e-6 * largest));
        let second = axes * DMat3::from_diagonal(values) * axes.transpose();
        let inertia = DMat3::from_diagonal(DVec3::splat(values.x + values.y + values.z)) - second;
        (Inertial { inertia: (inertia + inertia.transpose()) * 0.5, ..*self }, Some(Mended::Moments))
    }
}

/// The smallest principal moment, by the second moments: a rod has none about itself.
fn trace_of_two_smallest(values: DVec3) -> f64 {
    values.x + values.y + values.z - values.max_element()
}

/// Inertia of a point mass at `p` about the origin.
fn point_inertia(p: DVec3, mass: f64) -> DMat3 {
    let outer = DMat3::from_cols(p * p.x, p * p.y, p * p.z);
    (DMat3::from_diagonal(DVec3::splat(p.length_squared())) - outer) * mass
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::DQuat;

    #[test]
    fn two_halves_make_the_whole() {
        let half = Inertial::of_shape(&Shape::cuboid(0.5, 1.0, 1.0), 0.5).unwrap();
        let whole = Inertial::of_shape(&Shape::cuboid(1.0, 1.0, 1.0), 1.0).unwrap();
        let at = |x: f64| half.moved(Pose::at(DVec3::X * x));
        let sum = at(-0.25).plus(&at(0.25));
        assert!((sum.inertia - whole.inertia).to_cols_array().iter().all(|x| x.abs() < 1e-15));
        let turned = sum.moved(Pose::new(DQuat::from_rotation_y(1.0), DVec3::Y));
        assert!((turned.centre - DVec3::Y).length() < 1e-15);
    }

    #[test]
    fn an_inertia_that_cannot_be_is_mended_and_a_rod_is_left_alone() {
        let diagonal =
            |x, y, z| Inertial { mass: 1.0, centre: DVec3::ZERO, inertia: DMat3::from_diagonal(DVec3::new(x, y, z)) };
        let (mended, fault) = diagonal(0.01, 0.001, 0.001).mended();
        assert_eq!(fault, Some(Mended::Moments));
        let i = mended.inertia;
        assert!(i.y_axis.y + i.z_axis.z >= i.x_axis.x * (1.0 - 1e-12));
        assert_eq!(diagonal(0.002, 0.001, 0.001).mended().1, None);
        assert_eq!(diagonal(0.0, 0.0, 0.0).mended().1, Some(Mended::Missing));
        assert_eq!(diagonal(-1.0, 1.0, 2.0).mended().1, Some(Mended::Moments));
    }
}
