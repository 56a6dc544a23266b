//! Masses. Of a figure on two legs: the shares of published tables of segments [de Leva 1996, table 4, mean of both sexes], fitted to the volumes of the segments, and one
//! total, by its height unless told. Of all others: volumes. Twins weigh the same.

use super::names::Class;
use super::plan::{Kind, Plan};
use super::{Bone, DENSITY, fit};
use crate::Note;

/// A segment of the body with its share of the mass; those of limbs are there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    Head,
    Trunk,
    UpperArm,
    Forearm,
    Hand,
    Thigh,
    Shank,
    Foot,
}

use Segment::*;

/// In percent, both sides together; they sum up to 100.
const TABLE: [(Segment, f64); 8] = [
    (Head, 6.8),
    (Trunk, 43.0),
    (UpperArm, 5.2),
    (Forearm, 3.0),
    (Hand, 1.2),
    (Thigh, 29.0),
    (Shank, 9.2),
    (Foot, 2.6),
];

/// The share of a segment follows its volume by up to this factor from the table.
const FITTED: f64 = 1.5;
/// Body mass index of a figure that no mass is told of \[kg/m²\].
const INDEX: f64 = 22.0;
/// What hangs and sways has at most this share of the whole, a bone.
const LIGHT: f64 = 0.005;

/// Where the mass of a segment goes that has no bone.
fn heir(segment: Segment) -> Segment {
    match segment {
        Hand => Forearm,
        Forearm => UpperArm,
        Foot => Shank,
        Shank => Thigh,
        _ => Trunk,
    }
}

fn segment(class: Class) -> Option<Segment> {
    Some(match class {
        Class::Pelvis | Class::Spine | Class::Clavicle => Trunk,
        Class::Neck | Class::Head => Head,
        Class::UpperArm => UpperArm,
        Class::Forearm => Forearm,
        Class::Hand | Class::Metacarpal | Class::FingerBase | Class::Finger => Hand,
        Class::Thigh => Thigh,
        Class::Calf => Shank,
        Class::Foot | Class::Toe => Foot,
        Class::Tail | Class::Unknown => return None,
    })
}

/// The mass of a figure of this height on two legs \[kg\].
pub(crate) fn usual(height: f64) -> f64 {
    INDEX * height * height
}

/// Gives each bone its mass; until now it holds the volume of its shape. `total` is what was asked for \[kg\].
pub(super) fn spread(
    bones: &mut [Bone],
    plan: &Plan,
    shares: &[&fit::Share],
    enclosed: Option<f64>,
    height: f64,
    total: Option<f64>,
    notes: &mut Vec<Note>,
) {
    let volumes = volumes(bones, plan, shares, enclosed, notes);
    let whole: f64 = volumes.iter().sum::<f64>().max(1e-300);
    let weights: Vec<f64> = match plan.kind {
        Kind::Biped => by_table(bones, plan, &volumes),
        Kind::Quadruped | Kind::Other => volumes.iter().map(|v| v / whole).collect(),
    };
    let usual = if plan.kind == Kind::Biped { usual(height) } else { DENSITY * whole };
    let total = total.unwrap_or(usual).max(1e-9);
    // No body is lighter than this part of all: a step with far lighter ones is slow.
    const LIGHTEST: f64 = 2e-5;
    for (bone, weight) in bones.iter_mut().zip(&weights) {
        bone.mass = total * weight.max(LIGHTEST);
        if *weight < LIGHTEST {
            let text = format!("its mass of {:.2e} kg is raised to {:.2e} kg", total * weight, bone.mass);
            notes.push(Note { code: "import/light", part: bone.name.clone(), text });
        }
    }
}

/// By bone, the same for twins: its part of the volume that the skin encloses; where it encloses none, the volume of its shape \[m³\].
fn volumes(
    bones: &[Bone],
    plan: &Plan,
    shares: &[&fit::Share],
    enclosed: Option<f64>,
    notes: &mut Vec<Note>,
) -> Vec<f64> {
    let shapes: f64 = bones.iter().map(|b| b.mass).sum();
    // A part of a tube, without its ends, gives two thirds of its volume, and a patch may give anything: none is far from its shape.
    let carried = |(bone, share): (&Bone, &&fit::Share)| share.volume.clamp(0.3 * bone.mass, 1.5 * bone.mass);
    let mut volumes: Vec<f64> = bones.iter().zip(shares).map(carried).collect();
    let sum: f64 = volumes.iter().sum();
    // Shapes and skin tell about the same volume, or the skin is several layers, inside out, or a sheet.
    match enclosed.filter(|v| sum > 0.0 && (0.2..4.0).contains(&(v / shapes.max(1e-300)))) {
        Some(volume) => volumes.iter_mut().for_each(|v| *v *= volume / sum),
        None => {
            let text = "the skin encloses no clear volume: the fitted shapes tell it".into();
            notes.push(Note { code: "import/open-skin", part: "scene".into(), text });
            volumes = bones.iter().map(|b| b.mass).collect();
        }
    }
    let both = |i: usize| plan.twins[i].map_or(volumes[i], |twin| 0.5 * (volumes[i] + volumes[twin]));
    (0..volumes.len()).map(both).collect()
}

/// By bone: its share of the mass by the table.
fn by_table(bones: &[Bone], plan: &Plan, volumes: &[f64]) -> Vec<f64> {
    // What a bone of no class is part of: that of the nearest one above that has a class; tails are by themselves.
    let mut segments: Vec<Option<Segment>> = Vec::with_capacity(bones.len());
    for (bone, class) in bones.iter().zip(&plan.classes) {
        let above = bone.parent.map_or(Some(Trunk), |p| segments[p]);
        segments.push(match class {
            Class::Tail => None,
            Class::Unknown => above,
            class => segment(*class),
        });
    }
    let whole: f64 = volumes.iter().sum::<f64>().max(1e-300);
    let mut weights: Vec<f64> = volumes.iter().map(|v| (v / whole).min(LIGHT)).collect();
    let light: f64 = weights.iter().zip(&segments).filter(|(_, s)| s.is_none()).map(|(w, _)| w).sum();
    // The table, segments without a bone taken up by the next, fitted to the volumes.
    let volume_of = |segment: Segment| -> f64 {
        volumes.iter().zip(&segments).filter(|(_, s)| **s == Some(segment)).map(|(v, _)| v / whole).sum()
    };
    let mut table = TABLE.map(|(segment, percent)| (segment, percent / 100.0));
    for k in (0..table.len()).rev() {
        let (segment, share) = table[k];
        if volume_of(segment) <= 0.0
            && let Some(to) = table.iter().position(|(s, _)| *s == heir(segment)).filter(|to| *to != k)
        {
            table[k].1 = 0.0;
            table[to].1 += share;
        }
    }
    for (segment, share) in &mut table {
        *share *= (volume_of(*segment) / share.max(1e-300)).clamp(1.0 / FITTED, FITTED);
    }
    let sum: f64 = table.iter().map(|(_, share)| share).sum::<f64>().max(1e-300);
    for (i, segment) in segments.iter().enumerate() {
        if let Some((_, share)) = segment.and_then(|segment| table.iter().find(|(s, _)| *s == segment)) {
            weights[i] = (1.0 - light) * share / sum * (volumes[i] / whole) / volume_of(segment.unwrap_or(Trunk));
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert!((TABLE.iter().map(|(_, percent)| percent).sum::<f64>() - 100.0).abs() < 1e-12);
        assert!((usual(1.75) - 67.4).abs() < 0.1);
    }
}
