//! What a hand did, drawn over a picture as in [Kim 2008, fig. 7]: the cursor a yellow circle with its path since the moment before, the bone it leads a blue
//! diamond, bones that keep their orientation a red ring, those that keep a place or a height a red frame. Joints that keyframes move, beyond the paper, are green dots.

use super::camera::View;
use super::files::Picture;
use super::moments::Posture;
use supple::control::{Aim, Mark, Mode};
use supple::glam::{DVec3, Vec2};
use supple::model::Joint;
use supple::{Input, Model, State};

/// What a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Cursor,
    Led,
    KeepsOrientation,
    KeepsPlace,
    Keyed,
}

/// The marks of an input on a state.
pub(super) fn of(model: &Model, input: &Input, state: &State) -> Vec<(Sign, DVec3)> {
    match input.control.mode {
        Mode::Goals => of_goals(input, state),
        Mode::Keyframes => {
            let joints = model.joints().iter().enumerate();
            let keyed = joints.filter(|(k, joint)| input.control.joint(*k).acts(joint));
            let place = |joint: &Joint| {
                let child = state.bodies[joint.child.index()].pose();
                child.transform_point(joint.child_from_joint.translation)
            };
            keyed.map(|(_, joint)| (Sign::Keyed, place(joint))).collect()
        }
        Mode::Off | Mode::Landing => Vec::new(),
    }
}

fn of_goals(input: &Input, state: &State) -> Vec<(Sign, DVec3)> {
    let mut marks = Vec::new();
    for goal in &input.control.goals {
        let point = state.bodies[goal.body.index()].pose().transform_point(goal.point);
        match (goal.mark, goal.aim) {
            (Mark::Cursor, Aim::Position { target, .. }) => marks.extend([(Sign::Led, point), (Sign::Cursor, target)]),
            (_, Aim::Orientation { .. } | Aim::AngularVelocity(_) | Aim::AngularAcceleration(_)) => {
                marks.push((Sign::KeepsOrientation, point));
            }
            _ => marks.push((Sign::KeepsPlace, point)),
        }
    }
    marks
}

const YELLOW: [u8; 3] = [250, 200, 20];
const BLUE: [u8; 3] = [30, 90, 220];
const RED: [u8; 3] = [215, 35, 35];
const GREEN: [u8; 3] = [40, 160, 60];
const EDGE: [u8; 3] = [60, 45, 0];
/// Half the size of a mark \[pixels\].
const SIZE: f32 = 6.5;

/// Draws the marks of a posture.
pub(super) fn draw(posture: &Posture, view: &View, origin: DVec3, picture: &mut Picture) {
    let pixel = |place: DVec3| {
        let before = view.before((place - origin).as_vec3());
        (before.z > view.near).then(|| view.pixel(before))
    };
    for pair in posture.trail.windows(2) {
        if let (Some(a), Some(b)) = (pixel(pair[0]), pixel(pair[1])) {
            let along = b - a;
            let distance = |p: Vec2| {
                let share = ((p - a).dot(along) / along.length_squared().max(1e-6)).clamp(0.0, 1.0);
                p.distance(a + along * share) - 1.0
            };
            paint(picture, a.min(b) - 3.0, a.max(b) + 3.0, YELLOW, distance);
        }
    }
    for (sign, place) in &posture.marks {
        let Some(at) = pixel(*place) else { continue };
        let (low, high) = (at - 2.0 * SIZE, at + 2.0 * SIZE);
        let ring = |size: f32, width: f32| move |p: Vec2| (p.distance(at) - size).abs() - width;
        match sign {
            Sign::Cursor => {
                paint(picture, low, high, YELLOW, |p| p.distance(at) - SIZE);
                paint(picture, low, high, EDGE, ring(SIZE, 0.7));
            }
            Sign::Led => {
                let diamond = |p: Vec2| (p - at).abs().element_sum() * std::f32::consts::FRAC_1_SQRT_2 - SIZE;
                paint(picture, low, high, BLUE, diamond);
            }
            Sign::Keyed => {
                paint(picture, low, high, GREEN, |p| p.distance(at) - 0.6 * SIZE);
                paint(picture, low, high, EDGE, ring(0.6 * SIZE, 0.5));
            }
            Sign::KeepsOrientation => paint(picture, low, high, RED, ring(1.3 * SIZE, 1.2)),
            Sign::KeepsPlace => {
                let frame = |p: Vec2| ((p - at).abs() - Vec2::new(1.4, 0.9) * SIZE).max_element().abs() - 1.2;
                paint(picture, low, high, RED, frame);
            }
        }
    }
}

/// Colours the pixels of a box for which a distance is below zero, their edges softly.
fn paint(picture: &mut Picture, low: Vec2, high: Vec2, colour: [u8; 3], distance: impl Fn(Vec2) -> f32) {
    let span = |low: f32, high: f32, most: usize| {
        let end = |x: f32| x.clamp(0.0, most as f32) as usize;
        end(low.floor())..end(high.ceil())
    };
    for y in span(low.y, high.y, picture.height) {
        for x in span(low.x, high.x, picture.width) {
            let cover = (0.5 - distance(Vec2::new(x as f32 + 0.5, y as f32 + 0.5))).clamp(0.0, 1.0);
            let pixel = &mut picture.pixels[y * picture.width + x];
            for (old, new) in pixel.iter_mut().zip(colour) {
                *old = (f32::from(*old) + cover * (f32::from(new) - f32::from(*old))).round() as u8;
            }
        }
    }
}
