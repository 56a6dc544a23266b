//! One number for a whole model. Each part is taken apart by naming every field: a new field does not compile until it is added.

use super::{
    AnchorSpring, Body, BodyId, Coupling, Groups, HeightField, Joint, Limits, Material, Motor, Obstacle, ObstacleShape,
    PlacedShape, Range, RotationSpring, Shape, SlideSpring, Stops, SwingEllipse, Tracker,
};

use crate::flesh::Flesh;
use crate::maths::Pose;
use crate::maths::fnv::Fnv;
use crate::skin::Skin;
use glam::DVec3;

/// What a model is made of.
pub(super) struct Parts<'p> {
    pub(super) bodies: &'p [Body],
    pub(super) joints: &'p [Joint],
    pub(super) anchor_springs: &'p [AnchorSpring],
    pub(super) couplings: &'p [Coupling],
    pub(super) trackers: &'p [Tracker],
    pub(super) obstacles: &'p [Obstacle],
    pub(super) strangers: &'p [(BodyId, BodyId)],
    pub(super) flesh: Option<&'p Flesh>,
    pub(super) skin: Option<&'p Skin>,
}

/// The hash of everything but names.
pub(super) fn fingerprint(parts: &Parts<'_>) -> u64 {
    let Parts { bodies, joints, anchor_springs, couplings, trackers, obstacles, strangers, flesh, skin } = parts;
    let mut hash = Fnv::new();
    for length in [bodies.len(), joints.len(), anchor_springs.len(), trackers.len(), obstacles.len(), strangers.len()] {
        hash.u64(length as u64);
    }
    bodies.iter().for_each(|part| body(part, &mut hash));
    joints.iter().for_each(|part| joint(part, &mut hash));
    anchor_springs.iter().for_each(|part| anchor_spring(part, &mut hash));
    trackers.iter().for_each(|part| tracker(part, &mut hash));
    obstacles.iter().for_each(|part| obstacle(part, &mut hash));
    couplings.iter().for_each(|part| coupling(part, &mut hash));
    strangers.iter().for_each(|(a, b)| hash.u64(u64::from(a.0) << 32 | u64::from(b.0)));
    flesh.iter().for_each(|flesh| flesh.hash(&mut hash));
    skin.iter().for_each(|skin| skin.hash(&mut hash));
    hash.finish()
}

fn body(part: &Body, hash: &mut Fnv) {
    let Body { name: _, mass, inertia, centre_in_link, shapes, material, groups, start } = part;
    surface(material, groups, hash);
    hash.f64(*mass);
    hash.f64s(&inertia.to_cols_array());
    hash.f64s(&centre_in_link.to_array());
    pose(start, hash);
    hash.u64(shapes.len() as u64);
    for PlacedShape { shape: solid, body_from_shape } in shapes {
        pose(body_from_shape, hash);
        shape(solid, hash);
    }
}

fn obstacle(part: &Obstacle, hash: &mut Fnv) {
    let Obstacle { name: _, shape: form, pose: place, material, groups } = part;
    pose(place, hash);
    surface(material, groups, hash);
    match form {
        ObstacleShape::HalfSpace => hash.u64(0),
        ObstacleShape::Solid(solid) => {
            hash.u64(1);
            shape(solid, hash);
        }
        ObstacleShape::HeightField(HeightField { columns, rows, length_x, length_z, heights }) => {
            hash.u64(2);
            [*columns, *rows].into_iter().for_each(|n| hash.u64(n as u64));
            hash.f64s(&[*length_x, *length_z]);
            hash.f64s(heights);
        }
        ObstacleShape::Mesh { vertices, triangles } => {
            hash.u64(3);
            mesh(vertices, triangles, hash);
        }
    }
}

fn surface(material: &Material, groups: &Groups, hash: &mut Fnv) {
    let Material { friction, restitution, rolling } = material;
    hash.f64s(&[*friction, *restitution]);
    if *rolling != 0.0 {
        hash.f64s(&[*rolling]); // models without it keep the fingerprint they had before there was any
    }
    let Groups { member, collides_with } = groups;
    hash.u64(u64::from(*member) << 32 | u64::from(*collides_with));
}

fn points(points: &[DVec3], hash: &mut Fnv) {
    hash.u64(points.len() as u64);
    points.iter().for_each(|p| hash.f64s(&p.to_array()));
}

fn mesh(vertices: &[DVec3], triangles: &[[u32; 3]], hash: &mut Fnv) {
    points(vertices, hash);
    hash.u64(triangles.len() as u64);
    triangles.iter().flatten().for_each(|corner| hash.u64(u64::from(*corner)));
}

fn shape(part: &Shape, hash: &mut Fnv) {
    match part {
        Shape::Sphere { radius } => {
            hash.u64(0);
            hash.f64(*radius);
        }
        Shape::Cuboid { size } => {
            hash.u64(1);
            hash.f64s(&size.to_array());
        }
        Shape::Capsule { length, radius } => {
            hash.u64(2);
            hash.f64s(&[*length, *radius]);
        }
        Shape::Cylinder { length, radius } => {
            hash.u64(3);
            hash.f64s(&[*length, *radius]);
        }
        Shape::Hull { points: corners } => {
            hash.u64(4);
            points(corners, hash);
        }
        Shape::Mesh { vertices, triangles } => {
            hash.u64(5);
            mesh(vertices, triangles, hash);
        }
    }
}

fn joint(part: &Joint, hash: &mut Fnv) {
    let Joint {
        name: _,
        child,
        parent,
        mask,
        child_from_joint,
        parent_from_joint,
        rotation_spring,
        slide_spring,
        limits,
        motor,
        collide,
    } = part;
    hash.u64(u64::from(*collide));
    hash.u64(u64::from(child.0));
    holder(*parent, hash);
    hash.u64(u64::from(mask.bits()));
    pose(child_from_joint, hash);
    pose(parent_from_joint, hash);
    let RotationSpring { stiffness, damping, rest, rest_turns } = rotation_spring;
    hash.f64s(&[*stiffness, *damping, *rest_turns]);
    hash.f64s(&rest.to_array());
    let SlideSpring { stiffness, damping, rest } = slide_spring;
    hash.f64s(&[*stiffness, *damping]);
    hash.f64s(&rest.to_array());
    let Limits { angle, swing, slide, stops, stiffness, damping, slide_stiffness, slide_damping } = limits;
    for range in [angle, slide] {
        option(range.map(|Range { min, max }| [min, max]), hash);
    }
    option(swing.map(|SwingEllipse { about_y, about_z }| [about_y, about_z]), hash);
    hash.u64(match stops {
        Stops::Soft => 0,
        Stops::Hard => 1,
    });
    hash.f64s(&[*stiffness, *damping, *slide_stiffness, *slide_damping]);
    option(motor.map(|Motor { stiffness, damping, max, integral }| [stiffness, damping, max, integral]), hash);
}

fn anchor_spring(part: &AnchorSpring, hash: &mut Fnv) {
    let AnchorSpring { name: _, a, point_in_a, b, point_in_b, stiffness, damping, rest_length } = part;
    hash.u64(u64::from(a.0));
    holder(*b, hash);
    hash.f64s(&point_in_a.to_array());
    hash.f64s(&point_in_b.to_array());
    hash.f64s(&[*stiffness, *damping, *rest_length]);
}

fn coupling(part: &Coupling, hash: &mut Fnv) {
    let Coupling { name: _, follower, leader, polynomial } = part;
    hash.u64(u64::from(follower.0));
    hash.u64(leader.map_or(u64::MAX, |leader| u64::from(leader.0)));
    hash.f64s(polynomial);
}

fn tracker(part: &Tracker, hash: &mut Fnv) {
    let Tracker { name: _, body, point, stiffness, damping, rotation_stiffness, rotation_damping } = part;
    hash.u64(u64::from(body.0));
    hash.f64s(&point.to_array());
    hash.f64s(&[*stiffness, *damping, *rotation_stiffness, *rotation_damping]);
}

/// A body, or the world.
fn holder(body: Option<BodyId>, hash: &mut Fnv) {
    hash.u64(body.map_or(u64::MAX, |body| u64::from(body.0)));
}

fn pose(Pose { rotation, translation }: &Pose, hash: &mut Fnv) {
    hash.f64s(&rotation.to_array());
    hash.f64s(&translation.to_array());
}

fn option<const N: usize>(numbers: Option<[f64; N]>, hash: &mut Fnv) {
    hash.u64(u64::from(numbers.is_some()));
    hash.f64s(&numbers.unwrap_or([0.0; N]));
}

#[cfg(test)]
mod tests {
    use crate::Scene;

    #[test]
    fn it_is_the_same_for_the_same_model_only() {
        let of = |name: &str| Scene::parse(name).unwrap().model.fingerprint();
        assert_eq!(of("robot"), of("robot"));
        let names = ["robot", "hand", "chain:5", "chain:5,stiffness=11", "chain:5,damping=0.02", "chain:5,tip_mass=2"];
        let mut all: Vec<u64> = names.into_iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), names.len());
    }
}
