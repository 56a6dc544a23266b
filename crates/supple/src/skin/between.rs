//! What the surface touches between its vertices: a thing that comes down on the middle of a triangle or lies across an edge, and edges of two limbs that
//! cross.
//!
//! On each triangle near a thing the place is sought that is nearest to it, or deepest in it. Where that is at a vertex, or hardly nearer than one, the vertex
//! touches already.

use super::Skin;
use super::hierarchy::{Near, nearest_on};
use super::pose::Posed;
use super::touch::{Ahead, Search, Side, Spot, Thing};
use glam::DVec3;

/// Steps of a search on a triangle or an edge, each half as long as the one before.
const STEPS: usize = 7;
/// How much nearer than the vertices around it a place must be, in the triangle's longest side.
const NEARER: f64 = 0.07;
/// The same where edges cross, in the layer's depth.
const CROSSING: f64 = 0.04;
/// A place with more than this share of a vertex is the vertex.
const AT_VERTEX: f64 = 0.97;
/// No place on a triangle is farther from its nearest corner than this, in its longest side.
const INWARD: f64 = 0.6;
/// How much longer sides may be than at rest.
const STRETCH: f64 = 1.25;
/// Features of keys: a triangle, or an edge by its second vertex.
const OF_TRIANGLE: u32 = 1;
const OF_EDGE: u32 = 2;

impl Search {
    /// Finds where triangles of the bones that were noted touch a thing; `gaps` has how far their vertices are from it.
    pub(super) fn test_between<G, S>(&mut self, skin: &Skin, posed: &Posed, ahead: Ahead, thing: &Thing<G, S>)
    where
        G: Fn(DVec3, f64) -> Option<(f64, DVec3)>,
        S: Fn(DVec3) -> (Side, DVec3),
    {
        let Search { prune, all, near, gaps, .. } = self;
        for t in near.iter().flat_map(|&bone| skin.proxies.triangles(bone)).copied() {
            let corners = skin.triangles[t as usize];
            let gap_of = |v: u32| if prune.was_looked_at(v) { gaps[v as usize] } else { f64::INFINITY };
            let least = corners.iter().map(|&v| gap_of(v)).fold(f64::INFINITY, f64::min);
            let side = STRETCH * skin.proxies.sides[t as usize];
            // vertices that were not found are farther than the search reached
            if least.min(ahead.reach + skin.depth) > ahead.reach + INWARD * side {
                continue;
            }
            // what rests on two corners is held by them
            if corners.iter().filter(|&&v| gap_of(v) < ahead.slack).count() > 1 {
                continue;
            }
            let places = corners.map(|v| posed.places[v as usize]);
            let speed = |v: u32| (posed.velocities[v as usize] - (thing.side)(posed.places[v as usize]).1).length();
            let back = |v: u32| posed.displaced[v as usize].length();
            let most_of = |of: &dyn Fn(u32) -> f64| corners.iter().map(|&v| of(v)).fold(0.0, f64::max);
            let comes = ahead.comes(most_of(&speed), most_of(&back));
            if least.is_finite() && least > comes + INWARD * side {
                continue;
            }
            let farthest = if least.is_finite() { least.abs() } else { comes } + INWARD * side;
            let most = comes.min(least - NEARER * side);
            let Some((shares, found)) = lowest(places, side, most, |x| (thing.gap)(x, farthest)) else { continue };
            if shares.max_element() > AT_VERTEX || found.0 > most {
                continue;
            }
            let (spot, feature) = on_edge(corners, shares).unwrap_or((Spot { corners, shares }, OF_TRIANGLE));
            let at = (thing.side)(spot.sum(|v| posed.places[v]));
            let touch = ahead.touch((skin, posed), spot, found, at, (thing.friction, thing.key, feature));
            // of triangles the number is the key: two may begin with one vertex
            all.extend(touch.map(|mut touch| {
                touch.key.place = if feature == OF_TRIANGLE { t } else { touch.key.place };
                touch
            }));
        }
    }

    /// Finds where edges of limbs that are near one another cross; `gaps` has how far their vertices are from each other's triangles.
    pub(super) fn test_crossings(&mut self, skin: &Skin, posed: &Posed, ahead: Ahead, (near_by, reach): (f64, f64)) {
        let Search { prune, own, gaps, crossings, all, .. } = self;
        crossings.clear();
        for (corners, &bone) in skin.triangles.iter().zip(&skin.proxies.triangle_bones) {
            if !prune.is_paired(bone) {
                continue;
            }
            for (a, b) in (0..3).map(|k| (corners[k], corners[(k + 1) % 3])).filter(|(a, b)| a < b) {
                let [from, to] = [a, b].map(|v| posed.places[v as usize]);
                let outward = own.vertex_normal(a as usize) + own.vertex_normal(b as usize);
                let wanted = |t: u32| prune.may_touch(skin, own, (bone, &[a, b], outward), t, near_by);
                let farthest = reach + 0.5 * from.distance(to);
                let Some((s, found)) = lowest_on_edge(from, to, |x| own.nearest(x, farthest, wanted)) else { continue };
                let spot = Spot { corners: [a, b, a], shares: DVec3::new(1.0 - s, s, 0.0) };
                let other = skin.triangles[found.triangle as usize];
                let there = Spot { corners: other, shares: found.shares };
                let ends = spot.corners().chain(there.corners()).map(|(v, _)| gaps[v as usize]);
                let least = ends.fold(f64::INFINITY, f64::min);
                if s.max(1.0 - s) > AT_VERTEX || found.gap > least - CROSSING * skin.depth {
                    continue;
                }
                // from both edges the same is found
                let pair = match on_edge(other, found.shares) {
                    Some((Spot { corners: [c, d, _], .. }, _)) if [c, d] < [a, b] => [c, d, a, b],
                    Some((Spot { corners: [c, d, _], .. }, _)) => [a, b, c, d],
                    None => [a, b, found.triangle, u32::MAX],
                };
                let touch = ahead.own_touch(skin, posed, spot, &found, OF_EDGE + b);
                crossings.extend(touch.map(|touch| (pair, touch)));
            }
        }
        crossings.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.gap.total_cmp(&b.1.gap)));
        crossings.dedup_by_key(|(pair, _)| *pair);
        all.extend(crossings.iter().map(|(_, touch)| *touch));
    }
}

/// The place as one of an edge, lower vertex first, with its feature; `None` within the triangle.
fn on_edge(corners: [u32; 3], shares: DVec3) -> Option<(Spot, u32)> {
    let out = (0..3).find(|&k| shares[k] <= 1e-6)?;
    let (mut i, mut j) = ((out + 1) % 3, (out + 2) % 3);
    if corners[i] > corners[j] {
        std::mem::swap(&mut i, &mut j);
    }
    let (a, b) = (corners[i], corners[j]);
    Some((Spot { corners: [a, b, a], shares: DVec3::new(shares[i], shares[j], 0.0) }, OF_EDGE + b))
}

/// The place on a triangle where a distance is least, by its shares, with the distance and its direction: down the slope, from the middle. None where the slope
/// there tells that it is nowhere less than `most`.
fn lowest(
    [a, b, c]: [DVec3; 3],
    side: f64,
    most: f64,
    gap: impl Fn(DVec3) -> Option<(f64, DVec3)>,
) -> Option<(DVec3, (f64, DVec3))> {
    let mut shares = DVec3::splat(1.0 / 3.0);
    let mut best: Option<(DVec3, (f64, DVec3))> = None;
    let mut step = 0.5 * side;
    for _ in 0..STEPS {
        let x = a * shares.x + b * shares.y + c * shares.z;
        let Some(found) = gap(x) else { break };
        // things are convex, or nearly
        let down = [a, b, c].map(|corner| found.1.dot(corner - x)).into_iter().fold(0.0, f64::min);
        if found.0 + down > most {
            return None;
        }
        if best.is_none_or(|(_, before)| found.0 < before.0) {
            best = Some((shares, found));
        }
        shares = nearest_on(x - found.1 * step, a, b, c);
        step *= 0.5;
    }
    best
}

/// The place on an edge where a distance to triangles is least, from 0 to 1: the half is kept into which it falls.
fn lowest_on_edge(from: DVec3, to: DVec3, nearest: impl Fn(DVec3) -> Option<Near>) -> Option<(f64, Near)> {
    let mut best: Option<(f64, Near)> = None;
    let (mut s, mut step) = (0.5, 0.25);
    for _ in 0..STEPS {
        let Some(found) = nearest(from.lerp(to, s)) else { break };
        if best.is_none_or(|(_, before)| found.gap < before.gap) {
            best = Some((s, found));
        }
        s += if found.normal.dot(to - from) > 0.0 { -step } else { step };
        step *= 0.5;
    }
    best
}
