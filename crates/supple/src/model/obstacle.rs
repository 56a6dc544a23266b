//! Obstacles: what bodies touch and cannot move. They stand where they were built, or move as the input tells.

use super::{MOST_LENGTH, Shape};
use crate::maths::Pose;
use crate::settings::plain;
use glam::DVec3;

/// How a surface rubs and bounces.
///
/// Where two meet, friction is the geometric mean of both coefficients; restitution and rolling resistance are the larger one:
///
/// ```
/// use supple::Material;
/// let (ice, rubber) = (Material::new(0.01, 0.0), Material::new(1.0, 0.8));
/// assert_eq!(ice.with(rubber), Material::new(0.1, 0.8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Material {
    /// Coefficient of Coulomb's friction, 0 or more.
    pub friction: f64,
    /// Part of the approaching speed that comes back, 0 to 1.
    pub restitution: f64,
    /// Length of the lever at which the normal force resists rolling \[m\]: soft matter gives way ahead of where it rolls.
    pub rolling: f64,
}

impl Default for Material {
    /// Friction 0.6, no restitution, no resistance to rolling.
    fn default() -> Self {
        Material::new(0.6, 0.0)
    }
}

impl Material {
    /// A hard material, which rolls freely.
    pub const fn new(friction: f64, restitution: f64) -> Material {
        Material { friction, restitution, rolling: 0.0 }
    }

    /// The same with a lever of rolling resistance \[m\].
    pub const fn rolling(self, rolling: f64) -> Material {
        Material { rolling, ..self }
    }

    /// What is wrong with it, if anything, and the remedy.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        let Material { friction, restitution, rolling } = *self;
        let good = friction.is_finite()
            && friction >= 0.0
            && (0.0..=1.0).contains(&restitution)
            && (0.0..=MOST_LENGTH).contains(&rolling);
        let [f, e, r] = [friction, restitution, rolling].map(plain);
        let what = || format!("its friction is {f}, its restitution {e}, its rolling resistance {r} m");
        let remedy = "give a friction of 0 or more, a restitution from 0 to 1 and a rolling resistance of 0 m or more";
        (!good).then(|| (what(), remedy))
    }

    /// What acts where two materials meet: the geometric mean of friction (one that is 0 wins), the larger restitution, and the
    /// rolling resistance of the softer one.
    pub fn with(self, other: Material) -> Material {
        Material {
            friction: (self.friction * other.friction).sqrt(),
            restitution: self.restitution.max(other.restitution),
            rolling: self.rolling.max(other.rolling),
        }
    }
}

/// Which bodies and obstacles touch each other, by bits: two do when each is in a group that the other collides with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The groups it is in, one bit each.
    pub member: u32,
    /// The groups it collides with.
    pub collides_with: u32,
}

impl Default for Groups {
    /// In the first group, colliding with all.
    fn default() -> Self {
        Groups { member: 1, collides_with: u32::MAX }
    }
}

impl Groups {
    /// Whether the two touch.
    pub fn meet(self, other: Groups) -> bool {
        self.member & other.collides_with != 0 && other.member & self.collides_with != 0
    }
}

/// The form of an obstacle, in its own coordinates.
#[derive(Clone, Debug, PartialEq)]
pub enum ObstacleShape {
    /// Everything below the plane through the origin: solid where y < 0.
    HalfSpace,
    /// A solid.
    Solid(Shape),
    /// Ground given by heights above the X–Z plane.
    HeightField(HeightField),
    /// A triangle mesh that need not be closed. It stops what comes from the side its triangles are counter-clockwise from;
    /// from the other side bodies pass through.
    Mesh {
        /// \[m\]
        vertices: Vec<DVec3>,
        /// Corner indices.
        triangles: Vec<[u32; 3]>,
    },
}

/// Heights on a regular grid, centred on the origin: `columns` along X, `rows` along Z. It stops what comes from above.
#[derive(Clone, Debug, PartialEq)]
pub struct HeightField {
    /// Grid points along X, at least 2.
    pub columns: usize,
    /// Grid points along Z, at least 2.
    pub rows: usize,
    /// Extent along X \[m\].
    pub length_x: f64,
    /// Extent along Z \[m\].
    pub length_z: f64,
    /// Heights \[m\], row after row: that of column i and row k is `heights[k * columns + i]`.
    pub heights: Vec<f64>,
}

/// An obstacle to be added.
///
/// ```
/// use supple::*;
/// let mut builder = ModelBuilder::new();
/// builder.body(BodySpec::new("ball").shape(Shape::sphere(0.1), 1000.0).pose(Pose::at(glam::DVec3::Y)));
/// let floor = builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(Material::new(0.8, 0.2)));
/// let model = builder.build()?;
/// assert_eq!(model.find_obstacle("floor"), Some(floor));
/// # Ok::<(), ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ObstacleSpec {
    pub(super) name: String,
    pub(super) shape: ObstacleShape,
    pub(super) pose: Pose,
    pub(super) material: Material,
    pub(super) groups: Groups,
}

impl ObstacleSpec {
    /// An obstacle at the world's origin.
    pub fn new(name: impl Into<String>, shape: ObstacleShape) -> ObstacleSpec {
        let (pose, material, groups) = (Pose::IDENTITY, Material::default(), Groups::default());
        ObstacleSpec { name: name.into(), shape, pose, material, groups }
    }

    /// A level floor: everything below `height` \[m\] is solid.
    pub fn floor(name: impl Into<String>, height: f64) -> ObstacleSpec {
        ObstacleSpec::new(name, ObstacleShape::HalfSpace).pose(Pose::at(DVec3::new(0.0, height, 0.0)))
    }

    /// A solid that does not move by forces.
    pub fn solid(name: impl Into<String>, shape: Shape) -> ObstacleSpec {
        ObstacleSpec::new(name, ObstacleShape::Solid(shape))
    }

    /// Where it is in the world, unless [`Input::obstacles`](crate::Input::obstacles) tells otherwise.
    pub fn pose(mut self, world_from_obstacle: Pose) -> ObstacleSpec {
        self.pose = world_from_obstacle;
        self
    }

    /// How its surface rubs and bounces.
    pub fn material(mut self, material: Material) -> ObstacleSpec {
        self.material = material;
        self
    }

    /// The groups it is in, one bit each; the first unless told.
    pub fn group(mut self, bits: u32) -> ObstacleSpec {
        self.groups.member = bits;
        self
    }

    /// The groups it collides with; all unless told.
    pub fn collides_with(mut self, bits: u32) -> ObstacleSpec {
        self.groups.collides_with = bits;
        self
    }
}

/// An obstacle of the [`Model`](crate::Model).
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// Unique among the obstacles.
    pub name: String,
    /// In its own coordinates.
    pub shape: ObstacleShape,
    /// `world_from_obstacle` while the input does not move it.
    pub pose: Pose,
    /// How its surface rubs and bounces.
    pub material: Material,
    /// What it touches.
    pub groups: Groups,
}

impl ObstacleShape {
    /// What is wrong with it, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        match self {
            ObstacleShape::HalfSpace => None,
            ObstacleShape::Solid(shape) => shape.solid().err().map(|fault| fault.to_string()),
            ObstacleShape::HeightField(field) => field.fault().map(str::to_owned),
            ObstacleShape::Mesh { vertices, triangles } => mesh_fault(vertices, triangles).map(str::to_owned),
        }
    }
}

impl HeightField {
    /// The point of column `i` and row `k` \[m\].
    pub fn point(&self, i: usize, k: usize) -> DVec3 {
        let along = |i: usize, n: usize, length: f64| length * (i as f64 / (n - 1) as f64 - 0.5);
        let (x, z) = (along(i, self.columns, self.length_x), along(k, self.rows, self.length_z));
        DVec3::new(x, self.heights[k * self.columns + i], z)
    }

    /// The vertices and triangles of its surface, two triangles a cell, counter-clockwise from above.
    pub fn surface(&self) -> (Vec<DVec3>, Vec<[u32; 3]>) {
        let (nx, nz) = (self.columns, self.rows);
        let vertices = (0..nx * nz).map(|n| self.point(n % nx, n / nx)).collect();
        let mut triangles = Vec::with_capacity(2 * (nx - 1) * (nz - 1));
        for k in 0..nz - 1 {
            for i in 0..nx - 1 {
                let [a, b, c, d] =
                    [k * nx + i, k * nx + i + 1, (k + 1) * nx + i, (k + 1) * nx + i + 1].map(|n| n as u32);
                triangles.extend([[a, c, b], [b, c, d]]);
            }
        }
        (vertices, triangles)
    }

    fn fault(&self) -> Option<&'static str> {
        let size = |x: f64| x.is_finite() && x > 0.0;
        if self.columns < 2 || self.rows < 2 {
            Some("the height field has fewer than 2 rows or columns")
        } else if self.columns.checked_mul(self.rows) != Some(self.heights.len()) {
            Some("the height field has not rows × columns heights")
        } else if !(size(self.length_x) && size(self.length_z)) {
            Some("a length of the height field is zero, negative or not finite")
        } else if self.heights.len() > MOST_VERTICES {
            Some("the height field has more than 16 million points")
        } else if !self.heights.iter().all(|y| y.is_finite()) {
            Some("a height is not finite")
        } else {
            None
        }
    }
}

/// Indices stay well inside 32 bits.
const MOST_VERTICES: usize = 1 << 24;

fn mesh_fault(vertices: &[DVec3], triangles: &[[u32; 3]]) -> Option<&'static str> {
    if triangles.is_empty() {
        Some("the mesh has no triangle")
    } else if triangles.len() > MOST_VERTICES {
        Some("the mesh has more than 16 million triangles")
    } else if !vertices.iter().all(|v| v.is_finite()) {
        Some("a vertex is not finite")
    } else if triangles.iter().flatten().any(|&i| i as usize >= vertices.len()) {
        Some("a triangle names a vertex that does not exist")
    } else {
        None
    }
}
