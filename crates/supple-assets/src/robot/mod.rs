//! Robots as files tell them: links in a tree, each moved against its parent along one or more axes. What URDF and MJCF have in common; a
//! reader fills it, [`build`] makes a model of it.
//!
//! Everything is in the axes of the file, Z up. Link coordinates are those of the file; a joint's place is given in the link that it
//! moves:
//!
//! ```text
//! parent_from_link(q) = parent_from_link · T_1(q_1) · T_2(q_2) · …
//! ```
//! with `T_i` a turn about, or a slide along, an axis through an anchor in link coordinates.

mod build;
mod inertia;

pub use build::{Base, Built, FileJoint, build};
pub use inertia::Inertial;
pub(crate) use inertia::Mended;

use crate::Note;
use glam::{DQuat, DVec3};
use supple::{Contacts, Groups, Pose, Shape};

/// A robot as its file tells it.
#[derive(Clone, Debug, Default)]
pub struct Robot {
    /// Its name, or that of the file.
    pub name: String,
    /// A parent comes before its children.
    pub links: Vec<Link>,
    /// What stands in the world.
    pub fixtures: Vec<Geom>,
    /// Joints beside those of the tree.
    pub closures: Vec<Closure>,
    /// Axes that follow others.
    pub couplings: Vec<AxisCoupling>,
    /// Springs between points.
    pub springs: Vec<PointSpring>,
    /// Pairs of links that do not touch each other.
    pub strangers: Vec<(usize, usize)>,
    /// \[m/s²\], in the axes of the file.
    pub gravity: DVec3,
    /// What touches what.
    pub contacts: Contacts,
    /// Named poses.
    pub poses: Vec<NamedPose>,
    /// What the reader changed, guessed or left out.
    pub notes: Vec<Note>,
}

/// A link.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Unique among the links.
    pub name: String,
    /// `None`: the world.
    pub parent: Option<usize>,
    /// Where it is in its parent when its axes are at zero.
    pub parent_from_link: Pose,
    /// How it moves against its parent, the first axis nearest to the parent; none: it is fixed.
    pub axes: Vec<Axis>,
    /// `None`: the file gives it no mass.
    pub inertial: Option<Inertial>,
    /// Its shapes.
    pub geoms: Vec<Geom>,
}

/// One motion of a link against its parent.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Unique among the axes.
    pub name: String,
    /// What moves.
    pub kind: Kind,
    /// A point of it, in link coordinates \[m\].
    pub anchor: DVec3,
    /// Its direction in link coordinates, of unit length.
    pub direction: DVec3,
    /// What the file calls the position in which `parent_from_link` holds \[rad, m\].
    pub reference: f64,
    /// Smallest and largest position, as the file counts it \[rad, m\]; of a ball: from 0 to its largest turn.
    pub range: Option<[f64; 2]>,
    /// Largest swing of a ball about two axes across its direction, and twist about it \[rad\].
    pub cone: Option<[f64; 3]>,
    /// \[N·m/rad, N/m\]
    pub stiffness: f64,
    /// Where the spring is slack, as the file counts it \[rad, m\].
    pub rest: f64,
    /// \[N·m·s/rad, N·s/m\]
    pub damping: f64,
    /// What drives it.
    pub actuator: Option<Actuator>,
}

impl Axis {
    /// A motion without limits, springs and motor.
    pub fn new(name: impl Into<String>, kind: Kind) -> Axis {
        Axis {
            name: name.into(),
            kind,
            anchor: DVec3::ZERO,
            direction: DVec3::Z,
            reference: 0.0,
            range: None,
            cone: None,
            stiffness: 0.0,
            rest: 0.0,
            damping: 0.0,
            actuator: None,
        }
    }
}

/// What an axis lets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A turn about the direction.
    Hinge,
    /// A slide along it.
    Slide,
    /// All turns about the anchor.
    Ball,
    /// Slides across the direction and a turn about it.
    Planar,
    /// Everything.
    Free,
}

/// A motor as the file tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Actuator {
    /// Gains of a servo: stiffness and damping; `None`: the file leaves them open.
    pub gains: Option<[f64; 2]>,
    /// Largest torque or force \[N·m, N\].
    pub max: f64,
    /// What it aims at when nobody tells it otherwise.
    pub target: Option<supple::ServoTarget>,
}

/// A shape on a link or in the world.
#[derive(Clone, Debug)]
pub struct Geom {
    /// Empty if it has none.
    pub name: String,
    /// Its form.
    pub form: Form,
    /// Its place on the link or in the world.
    pub place: Pose,
    /// What it touches.
    pub groups: Groups,
    /// Coefficient of friction, if the file gives one.
    pub friction: Option<f64>,
    /// Lever of its rolling resistance \[m\].
    pub rolling: f64,
}

impl Geom {
    /// Whether it touches anything, rather than being there to be looked at.
    pub fn touches(&self) -> bool {
        self.groups.member != 0 && self.groups.collides_with != 0
    }
}

/// The form of a shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A solid.
    Solid(Shape),
    /// Everything below the X–Y plane.
    Below,
}

/// A joint that closes a loop or ties what is free.
#[derive(Clone, Debug)]
pub struct Closure {
    /// Unique among the closures.
    pub name: String,
    /// Whether turning is held too.
    pub kind: ClosureKind,
    /// One side: a link, or the world.
    pub a: Option<usize>,
    /// The joint in link (or world) coordinates of side a.
    pub in_a: Pose,
    /// The other side.
    pub b: Option<usize>,
    /// The joint on the other side; `None`: where it is on side a when all axes are at zero.
    pub in_b: Option<Pose>,
}

/// What a closure holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosureKind {
    /// Two points stay together.
    Point,
    /// Two frames stay together.
    Frame,
}

/// An axis that follows another: with x and y their positions from their references, `y = c_0 + c_1 x + … + c_4 x⁴`.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisCoupling {
    /// Unique among the couplings.
    pub name: String,
    /// Name of the axis that follows.
    pub follower: String,
    /// Name of the axis that it follows; `None`: it stays at c_0.
    pub leader: Option<String>,
    /// c_0 … c_4.
    pub polynomial: [f64; 5],
}

/// A spring between a point of one link and a point of another.
#[derive(Clone, Debug)]
pub struct PointSpring {
    /// Unique among them.
    pub name: String,
    /// One side; `None` is the world.
    pub a: Option<usize>,
    /// \[m\]
    pub point_in_a: DVec3,
    /// The other side.
    pub b: Option<usize>,
    /// \[m\]
    pub point_in_b: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// \[m\]; `None`: the length when all axes are at zero.
    pub rest_length: Option<f64>,
}

/// A pose that the file names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPose {
    /// Its name.
    pub name: String,
    /// Positions by axis, in the order of links and their axes: one number each, four (w, x, y, z) of a ball, seven of a free link.
    pub positions: Vec<f64>,
}

impl Kind {
    /// How many numbers hold a position, as the file counts them.
    pub fn positions(self) -> usize {
        match self {
            Kind::Hinge | Kind::Slide => 1,
            Kind::Planar => 3,
            Kind::Ball => 4,
            Kind::Free => 7,
        }
    }
}

/// Z up to Y up: the one turn between the axes of a file and those of the model.
pub fn y_up() -> DQuat {
    DQuat::from_rotation_x(-std::f64::consts::FRAC_PI_2)
}

/// Carries Z of a file's round solids to X, along which those of the model lie.
pub(crate) fn z_from_x() -> DQuat {
    DQuat::from_rotation_y(-std::f64::consts::FRAC_PI_2)
}
