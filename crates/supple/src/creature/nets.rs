//! From a distance to a surface of triangles [surface nets].

use crate::flesh::SurfaceMesh;
use glam::DVec3;
use std::collections::BTreeMap;

/// More samples than this are taken for a mistake.
const MOST_SAMPLES: f64 = 2e7;
/// Rounds in which vertices are spread along the surface.
const ROUNDS: usize = 12;

/// The surface `distance = 0` within a box, with vertices about `spacing` apart.
pub(super) fn polygonise(
    low: DVec3,
    high: DVec3,
    spacing: DVec3,
    distance: &dyn Fn(DVec3) -> f64,
) -> Result<SurfaceMesh, String> {
    // A whole number of cells, centred: a symmetric body gets a symmetric surface. Two empty ones on each side.
    let cells = ((high - low) / spacing).ceil() + DVec3::splat(4.0);
    if cells.x * cells.y * cells.z > MOST_SAMPLES {
        return Err(format!("its spacing of {spacing} m is too small for a body of {} m", high - low));
    }
    let corner = 0.5 * (low + high) - 0.5 * spacing * cells;
    let n = cells.to_array().map(|cells| cells as usize + 1);
    let index = |x: usize, y: usize, z: usize| (x * n[1] + y) * n[2] + z;
    let at = |x: usize, y: usize, z: usize| corner + DVec3::new(x as f64, y as f64, z as f64) * spacing;
    let mut values = vec![0.0; n[0] * n[1] * n[2]];
    for x in 0..n[0] {
        for y in 0..n[1] {
            for z in 0..n[2] {
                values[index(x, y, z)] = distance(at(x, y, z));
            }
        }
    }

    // One vertex in each cell that the surface passes through: the mean of its crossings
    let mut surface = SurfaceMesh::default();
    let mut vertex: BTreeMap<[usize; 3], u32> = BTreeMap::new();
    for x in 0..n[0] - 1 {
        for y in 0..n[1] - 1 {
            for z in 0..n[2] - 1 {
                let offset = |k: usize| [x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)];
                let value = |k: usize| {
                    let [x, y, z] = offset(k);
                    values[index(x, y, z)]
                };
                let (mut sum, mut count) = (DVec3::ZERO, 0.0);
                for a in 0..8 {
                    for bit in [1, 2, 4] {
                        let b = a | bit;
                        if b == a || (value(a) < 0.0) == (value(b) < 0.0) {
                            continue;
                        }
                        let t = value(a) / (value(a) - value(b));
                        let [pa, pb] = [a, b].map(|k| {
                            let [x, y, z] = offset(k);
                            at(x, y, z)
                        });
                        sum += pa.lerp(pb, t);
                        count += 1.0;
                    }
                }
                if count > 0.0 {
                    vertex.insert([x, y, z], surface.vertices.len() as u32);
                    surface.vertices.push(sum / count);
                }
            }
        }
    }

    // One quadrilateral across each edge of the grid that the surface cuts
    let mut quads: Vec<[u32; 4]> = Vec::new();
    for x in 1..n[0] - 1 {
        for y in 1..n[1] - 1 {
            for z in 1..n[2] - 1 {
                for axis in 0..3 {
                    let mut next = [x, y, z];
                    next[axis] += 1;
                    let (here, there) = (values[index(x, y, z)], values[index(next[0], next[1], next[2])]);
                    if (here < 0.0) == (there < 0.0) {
                        continue;
                    }
                    // The four cells round the edge, counter-clockwise seen from where the axis points to
                    let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
                    let mut quad = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(du, dv)| {
                        let mut cell = [x, y, z];
                        cell[u] -= 1 - du;
                        cell[v] -= 1 - dv;
                        vertex[&cell]
                    });
                    if there < 0.0 {
                        quad.reverse(); // outside is where the value is positive
                    }
                    quads.push(quad);
                }
            }
        }
    }
    if quads.is_empty() {
        return Err(format!("its spacing of {spacing} m is too large: nothing of the body is seen"));
    }
    spread(&mut surface.vertices, &quads, spacing.min_element(), distance);
    for [a, b, c, d] in quads {
        // along the shorter diagonal
        let length = |i: u32, j: u32| surface.vertices[i as usize].distance_squared(surface.vertices[j as usize]);
        let pair = if length(a, c) <= length(b, d) { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] };
        surface.triangles.extend(pair);
    }
    match surface.fault() {
        None => Ok(surface),
        Some(what) => Err(format!("limbs touch in a way that the spacing of {spacing} m does not resolve: {what}")),
    }
}

/// Moves each vertex towards the middle of its neighbours and back onto the surface.
fn spread(vertices: &mut [DVec3], quads: &[[u32; 4]], spacing: f64, distance: &dyn Fn(DVec3) -> f64) {
    let mut edges: Vec<(u32, u32)> = quads.iter().flat_map(|q| (0..4).map(|k| (q[k], q[(k + 1) % 4]))).collect();
    edges.extend(edges.clone().iter().map(|&(a, b)| (b, a)));
    edges.sort_unstable();
    edges.dedup();
    let (mut sum, mut count) = (vec![DVec3::ZERO; vertices.len()], vec![0.0; vertices.len()]);
    for _ in 0..ROUNDS {
        sum.fill(DVec3::ZERO);
        count.fill(0.0);
        for &(a, b) in &edges {
            sum[a as usize] += vertices[b as usize];
            count[a as usize] += 1.0;
        }
        for (k, vertex) in vertices.iter_mut().enumerate() {
            *vertex = onto(vertex.lerp(sum[k] / count[k], 0.5), spacing, distance);
        }
    }
}

/// A few steps of Newton's method along the gradient, none longer than half the spacing.
fn onto(mut p: DVec3, spacing: f64, distance: &dyn Fn(DVec3) -> f64) -> DVec3 {
    let e = 1e-4 * spacing;
    for _ in 0..4 {
        let d = distance(p);
        let gradient = DVec3::from_array(std::array::from_fn(|k| {
            (distance(p + DVec3::AXES[k] * e) - distance(p - DVec3::AXES[k] * e)) / (2.0 * e)
        }));
        let size = gradient.length_squared();
        if size < 1e-12 {
            break;
        }
        let move_by = gradient * (-d / size);
        p += move_by.clamp_length_max(0.5 * spacing);
    }
    p
}
