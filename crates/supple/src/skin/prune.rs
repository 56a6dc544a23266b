//! What may touch at all: a convex proxy for each bone, grown by what its vertices have moved beside it [Galoppo 2007, §5.3]. Only vertices and triangles of
//! bones whose proxies come near something are looked at further.

use super::hierarchy::{Triangles, nearest_on};
use super::pose::Posed;
use super::{Influence, Skin};
use crate::contact::convex::{Convex, Placed};
use crate::contact::distance::{DistanceWork, distance};
use crate::contact::polytope::Polytope;
use crate::maths::Pose;
use crate::model::{BodyId, State, shape};
use glam::{DMat3, DVec3};

/// A vertex with less than this share of a bone is not in its proxy.
const SHARE: f64 = 0.05;
/// A proxy has a corner in about this many directions.
const DIRECTIONS: usize = 40;

/// A convex hull around the vertices of a bone at rest, in coordinates of its body.
#[derive(Debug)]
struct Proxy {
    /// About `middle`.
    hull: Polytope,
    middle: DVec3,
    size: f64,
    /// How far vertices stick out of the hull, which has few corners \[m\].
    slack: f64,
}

/// The proxies of a skin.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    /// By body.
    all: Vec<Option<Proxy>>,
    /// By body: its vertices are `listed[first[b]..first[b + 1]]`.
    first: Vec<u32>,
    listed: Vec<u32>,
    /// Pairs of bodies whose skins run into one another, (lower, higher), in order.
    neighbours: Vec<(u32, u32)>,
    /// By triangle: the body it follows most.
    pub(crate) triangle_bones: Vec<u32>,
    /// By vertex: the lowest vertex of the closed surface that it belongs to.
    pub(crate) pieces: Vec<u32>,
    /// By triangle: its longest side at rest \[m\].
    pub(crate) sides: Vec<f64>,
    /// By body: the triangles that follow it most are `of_bone[first_triangle[b]..first_triangle[b + 1]]`.
    first_triangle: Vec<u32>,
    of_bone: Vec<u32>,
}

/// The influences that count for proxies: all but small ones, and the largest in any case.
fn counted(skin: &Skin, a: usize) -> impl Iterator<Item = &Influence> {
    let own = &skin.influences[a][..skin.counts[a] as usize];
    own.iter().enumerate().filter(|(k, i)| *k == 0 || i.weight > SHARE).map(|(_, i)| i)
}

/// Which vertices are connected by triangles: for each the lowest.
fn pieces(n: usize, triangles: &[[u32; 3]]) -> Vec<u32> {
    let mut lowest: Vec<u32> = (0..n as u32).collect();
    loop {
        let before = lowest.clone();
        for t in triangles {
            let least = t.iter().map(|&v| lowest[v as usize]).fold(u32::MAX, u32::min);
            let least = lowest[least as usize];
            t.iter().for_each(|&v| lowest[v as usize] = least);
        }
        if lowest == before {
            return lowest;
        }
    }
}

impl Proxies {
    pub(crate) fn new(skin: &Skin, joined: &[(BodyId, BodyId)]) -> Proxies {
        let bodies = skin.body_from_rest.len();
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); bodies];
        let mut neighbours: Vec<(u32, u32)> = joined.iter().map(|(a, b)| (a.0.min(b.0), a.0.max(b.0))).collect();
        // nodes below the surface touch nothing
        let mut is_outside = vec![false; skin.nodes()];
        skin.triangles.iter().flatten().for_each(|&v| is_outside[v as usize] = true);
        for a in (0..skin.nodes()).filter(|&a| is_outside[a]) {
            for i in counted(skin, a) {
                lists[i.body as usize].push(a as u32);
                neighbours.extend(counted(skin, a).filter(|j| j.body > i.body).map(|j| (i.body, j.body)));
            }
        }
        neighbours.sort_unstable();
        neighbours.dedup();
        let all = lists
            .iter()
            .zip(&skin.body_from_rest)
            .map(|(list, rest)| {
                let points: Vec<DVec3> = list.iter().map(|&a| rest.transform_point(skin.rest[a as usize])).collect();
                Proxy::new(&points)
            })
            .collect();
        let mut first = vec![0u32];
        for list in &lists {
            first.push(first[first.len() - 1] + list.len() as u32);
        }
        let triangle_bones: Vec<u32> = skin
            .triangles
            .iter()
            .map(|t| {
                let own = || t.iter().flat_map(|&v| &skin.influences[v as usize]);
                let weight = |body: u32| own().filter(|i| i.body == body).map(|i| i.weight).sum::<f64>();
                let by_weight = |a: &&Influence, b: &&Influence| {
                    weight(a.body).total_cmp(&weight(b.body)).then(b.body.cmp(&a.body))
                };
                own().max_by(by_weight).map_or(0, |i| i.body)
            })
            .collect();
        let pieces = pieces(skin.nodes(), &skin.triangles);
        let longest = |t: &[u32; 3]| {
            let [a, b, c] = t.map(|v| skin.rest[v as usize]);
            a.distance(b).max(b.distance(c)).max(c.distance(a))
        };
        let sides = skin.triangles.iter().map(longest).collect();
        let mut of_bone: Vec<u32> = (0..triangle_bones.len() as u32).collect();
        of_bone.sort_by_key(|&t| triangle_bones[t as usize]);
        let before = |body: u32| of_bone.partition_point(|&t| triangle_bones[t as usize] < body) as u32;
        let first_triangle = (0..=bodies as u32).map(before).collect();
        let listed = lists.concat();
        Proxies { all, first, listed, neighbours, triangle_bones, pieces, sides, first_triangle, of_bone }
    }

    /// Triangles that follow a body most.
    pub(crate) fn triangles(&self, body: u32) -> &[u32] {
        let [from, to] = [0, 1].map(|k| self.first_triangle[body as usize + k] as usize);
        &self.of_bone[from..to]
    }

    /// Vertices of a body.
    pub(crate) fn vertices(&self, body: u32) -> &[u32] {
        &self.listed[self.first[body as usize] as usize..self.first[body as usize + 1] as usize]
    }

    /// Whether the skins of two bodies run into one another.
    pub(crate) fn are_neighbours(&self, a: u32, b: u32) -> bool {
        a == b || self.neighbours.binary_search(&(a.min(b), a.max(b))).is_ok()
    }

    /// For pictures.
    pub(super) fn surfaces(&self) -> Vec<(u32, Vec<DVec3>, Vec<[u32; 3]>)> {
        let surface = |(body, proxy): (usize, &Option<Proxy>)| {
            let proxy = proxy.as_ref()?;
            let (points, triangles) = shape::hull(&proxy.hull.vertices).ok()?;
            Some((body as u32, points.iter().map(|p| *p + proxy.middle).collect(), triangles))
        };
        self.all.iter().enumerate().filter_map(surface).collect()
    }
}

impl Proxy {
    fn new(points: &[DVec3]) -> Option<Proxy> {
        let first = *points.first()?;
        let low = points.iter().copied().fold(first, DVec3::min);
        let high = points.iter().copied().fold(first, DVec3::max);
        let middle = 0.5 * (low + high);
        // the farthest points in directions spread over the sphere
        let mut corners: Vec<DVec3> = (0..DIRECTIONS)
            .filter_map(|k| {
                let z = 1.0 - (2.0 * k as f64 + 1.0) / DIRECTIONS as f64;
                let (s, c) = (k as f64 * 2.399963229728653).sin_cos(); // the golden angle
                let r = (1.0 - z * z).sqrt();
                let d = DVec3::new(r * c, r * s, z);
                points.iter().copied().max_by(|a, b| a.dot(d).total_cmp(&b.dot(d)))
            })
            .collect();
        // thin ones get a thickness
        let least = 0.02 * (high - low).max_element().max(1e-6);
        if (high - low).min_element() < least {
            corners.extend(DVec3::AXES.iter().flat_map(|&e| [middle + e * least, middle - e * least]));
        }
        let hull = Polytope::new(&corners)?.moved(-middle);
        let size = hull.vertices.iter().map(|v| v.length()).fold(0.0, f64::max);
        // how far points lie outside: by the nearest of its triangles, unless they are behind all of them
        let (places, triangles) = shape::hull(&hull.vertices).ok()?;
        let faces: Vec<[DVec3; 3]> = triangles.iter().map(|t| t.map(|i| places[i as usize])).collect();
        let outside = |p: &DVec3| {
            let p = *p - middle;
            let is_out = |[a, b, c]: &[DVec3; 3]| (*b - *a).cross(*c - *a).dot(p - *a) > 0.0;
            let away = |&[a, b, c]: &[DVec3; 3]| {
                let shares = nearest_on(p, a, b, c);
                p.distance(a * shares.x + b * shares.y + c * shares.z)
            };
            if faces.iter().any(is_out) { faces.iter().map(away).fold(f64::INFINITY, f64::min) } else { 0.0 }
        };
        let slack = points.iter().map(outside).fold(0.0, f64::max);
        Some(Proxy { hull, middle, size, slack })
    }
}

fn placed(hull: &Polytope, size: f64, pose: Pose, middle: DVec3) -> Placed<'_> {
    Placed {
        core: Convex::Polytope(hull),
        axes: DMat3::from_quat(pose.rotation),
        at: pose.transform_point(middle),
        size,
    }
}

/// Scratch of pruning.
#[derive(Default)]
pub(crate) struct PruneWork {
    /// By body: how far its vertices are from where it alone would carry them \[m\].
    pub(crate) grown: Vec<f64>,
    work: DistanceWork,
    /// Pairs of bodies whose proxies are near, (lower, higher), in order.
    pub(crate) pairs: Vec<(u32, u32)>,
    /// Vertices marked in this search.
    mark: Vec<u32>,
    round: u32,
}

impl PruneWork {
    /// Measures how far vertices are from where their bones alone would carry them.
    pub(crate) fn measure(&mut self, skin: &Skin, state: &State, posed: &Posed) {
        self.grown.clear();
        self.grown.resize(skin.body_from_rest.len(), 0.0);
        for &b in &skin.bones {
            let world_from_rest = state.bodies[b as usize].pose().then(skin.body_from_rest[b as usize]);
            let (turn, shift) = (DMat3::from_quat(world_from_rest.rotation), world_from_rest.translation);
            let farthest = skin
                .proxies
                .vertices(b)
                .iter()
                .map(|&a| posed.places[a as usize].distance_squared(turn * skin.rest[a as usize] + shift))
                .fold(0.0, f64::max);
            self.grown[b as usize] = farthest.sqrt();
        }
    }

    /// Distance of a bone's proxy to a convex shape, at least \[m\].
    pub(crate) fn gap(&mut self, skin: &Skin, state: &State, bone: u32, other: &Placed<'_>) -> f64 {
        let Some(proxy) = &skin.proxies.all[bone as usize] else { return f64::INFINITY };
        let own = placed(&proxy.hull, proxy.size, state.bodies[bone as usize].pose(), proxy.middle);
        let margin = proxy.slack + self.grown[bone as usize];
        // balls around them tell most apart
        let apart = own.at.distance(other.at) - own.size - other.size - margin;
        if apart > own.size + other.size {
            return apart;
        }
        distance(&own, other, &mut self.work).gap - margin
    }

    /// How far a bone's proxy is above a plane, at least \[m\].
    pub(crate) fn height(&self, skin: &Skin, state: &State, bone: u32, point: DVec3, normal: DVec3) -> f64 {
        let Some(proxy) = &skin.proxies.all[bone as usize] else { return f64::INFINITY };
        let own = placed(&proxy.hull, proxy.size, state.bodies[bone as usize].pose(), proxy.middle);
        normal.dot(own.support(-normal).0 - point) - proxy.slack - self.grown[bone as usize]
    }

    /// Finds the pairs of bones that are no neighbours and nearer than `reach`.
    pub(crate) fn find_pairs(&mut self, skin: &Skin, state: &State, reach: f64) {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.clear();
        for (k, &b) in skin.bones.iter().enumerate() {
            let Some(proxy) = &skin.proxies.all[b as usize] else { continue };
            let own = placed(&proxy.hull, proxy.size, state.bodies[b as usize].pose(), proxy.middle);
            let margin = proxy.slack + self.grown[b as usize];
            for &a in &skin.bones[..k] {
                if !skin.proxies.are_neighbours(a, b) && self.gap(skin, state, a, &own) - margin < reach {
                    pairs.push((a, b));
                }
            }
        }
        pairs.sort_unstable();
        self.pairs = pairs;
    }

    /// Whether a bone is near another that is no neighbour.
    pub(crate) fn is_paired(&self, bone: u32) -> bool {
        self.pairs.iter().any(|(a, b)| *a == bone || *b == bone)
    }

    /// Whether vertices of a bone, which look outward so, may touch a triangle: of a bone near theirs, face to face, and not `near_by` on the same surface.
    pub(crate) fn may_touch(
        &self,
        skin: &Skin,
        surface: &Triangles,
        (bone, vertices, outward): (u32, &[u32], DVec3),
        t: u32,
        near_by: f64,
    ) -> bool {
        let (corners, other) = (skin.triangles[t as usize], skin.proxies.triangle_bones[t as usize]);
        let piece = |v: u32| skin.proxies.pieces[v as usize];
        let apart = |c: u32, v: u32| skin.rest[c as usize].distance(skin.rest[v as usize]) > 2.0 * near_by;
        let is_far = |&c: &u32| vertices.iter().all(|&v| apart(c, v));
        self.pairs.binary_search(&(bone.min(other), bone.max(other))).is_ok()
            && (piece(corners[0]) != piece(vertices[0]) || corners.iter().all(is_far))
            && corners.iter().all(|&c| surface.vertex_normal(c as usize).dot(outward) < 0.0)
    }

    /// Starts a search in which each vertex is looked at once.
    pub(crate) fn start(&mut self, n: usize) {
        self.mark.resize(n, 0);
        self.round = self.round.wrapping_add(1);
    }

    /// Whether a vertex was looked at in this search.
    pub(crate) fn was_looked_at(&self, vertex: u32) -> bool {
        self.mark[vertex as usize] == self.round
    }

    /// Whether a vertex is looked at for the first time in this search.
    pub(crate) fn is_first(&mut self, vertex: u32) -> bool {
        let first = self.mark[vertex as usize] != self.round;
        self.mark[vertex as usize] = self.round;
        first
    }
}
