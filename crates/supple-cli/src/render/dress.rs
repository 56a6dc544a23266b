//! The meshes that bodies carry, as the file of the character shows them.

use super::camera::Ball;
use super::coat::{Coat, Image, MOST_PIXELS};
use super::moments::Posture;
use super::raster::{Coated, Facet, Surface, Vertex};
use super::stage::{Finish, Paint};
use crate::terminal::Terminal;
use std::sync::Arc;
use supple::glam::{DVec3, Mat3, Vec2, Vec3, Vec4};
use supple::{Model, Pose, Scene};
use supple_assets::{Carried, Character, FileError, Imported, Look, Looks, MaterialLook, Opacity};

/// Normals that fit their triangles worse, by the mean cosine, are not meant for them: even those of a cube that is shaded as a ball have 0.58.
const LEAST_AGREEMENT: f32 = 0.5;
/// Vertices of a mesh that are looked at for how far it reaches.
const SOME: usize = 400;

/// Meshes with their materials, and the bodies that carry them.
#[derive(Debug, Default)]
pub(super) struct Dress {
    worn: Vec<Worn>,
    pub(super) coats: Vec<Coat>,
    /// By body: whether a mesh shows it.
    pub(super) hidden: Vec<bool>,
    /// What images may still hold.
    pixels_left: usize,
}

/// A mesh on bodies.
#[derive(Debug)]
struct Worn {
    look: Look,
    paint: Paint,
    /// The first body of the figure that wears it, and where the world of its file lies.
    first: usize,
    place: Pose,
}

impl Dress {
    /// What a scene of a file shows: its own character, or the meshes of a robot, and the characters that were put into it. Scenes
    /// whose skin or flesh is simulated are drawn by that.
    pub(super) fn of(
        scene: &Scene,
        imported: &Imported,
        character: Option<&Character>,
        terminal: &Terminal,
    ) -> Result<Dress, FileError> {
        let mut dress =
            Dress { hidden: vec![false; scene.model.bodies().len()], pixels_left: MOST_PIXELS, ..Dress::default() };
        if scene.model.skin().is_none() && scene.model.flesh().is_none() {
            let looks = match character {
                Some(character) => character.looks()?,
                None => plain(imported),
            };
            dress.wear(looks, 0, Pose::IDENTITY, terminal);
        }
        for guest in scene.guests() {
            let told = imported.things.iter().find(|told| told.is_character() && told.name == guest.name);
            if let Some(player) = told.and_then(|told| imported.cast.get(&told.file)) {
                dress.wear(player.character.looks()?, guest.bodies.start, guest.place, terminal);
            }
        }
        Ok(dress)
    }

    fn wear(&mut self, looks: Looks, first: usize, place: Pose, terminal: &Terminal) {
        let Looks { meshes, images } = looks;
        let used = |k: usize| meshes.iter().any(|look| look.material.image == Some(k));
        let images: Vec<Option<Arc<Image>>> = images
            .iter()
            .enumerate()
            .map(|(k, bytes)| {
                if !used(k) {
                    return None;
                }
                let image = Image::read(bytes, &mut self.pixels_left);
                if let Err(what) = &image {
                    terminal.note(format_args!("image {k} of the file is left out: {what}"));
                }
                image.ok().map(Arc::new)
            })
            .collect();
        for mut look in meshes {
            if agreement(&look).is_some_and(|agreement| agreement < LEAST_AGREEMENT) {
                let name = &look.mesh.name;
                terminal.note(format_args!("normals of \"{name}\" do not fit its triangles, which are taken instead"));
                look.normals = smooth(&look);
            }
            let MaterialLook { colour: [r, g, b, _], image, unlit, .. } = look.material;
            for carried in &look.mesh.carried {
                self.hidden[first + carried.bodies[0].index()] = true;
            }
            let finish = if unlit { Finish::Unlit } else { Finish::Solid };
            let coat = Some(self.coats.len() as u32);
            let image = image.and_then(|k| images.get(k).cloned().flatten());
            self.coats.push(Coat::new(look.material, image));
            self.worn.push(Worn { look, paint: Paint { colour: Vec3::new(r, g, b), finish, coat }, first, place });
        }
    }

    pub(super) fn paints(&self) -> impl Iterator<Item = Paint> {
        self.worn.iter().map(|worn| worn.paint)
    }

    /// The surface in a posture, about a new origin; its parts are counted from `first`.
    pub(super) fn surface(&self, model: &Model, posture: &Posture, origin: DVec3, first: usize) -> Surface {
        let mut surface = Surface::default();
        for (k, worn) in self.worn.iter().enumerate() {
            surface.append(worn.surface(model, posture, origin, first + k));
        }
        surface
    }

    /// Places that it reaches in a posture, about a new origin.
    pub(super) fn reach(&self, model: &Model, posture: &Posture, origin: DVec3) -> Vec<Ball> {
        let mut balls = Vec::new();
        for worn in &self.worn {
            let vertices = worn.surface(model, posture, origin, 0).vertices;
            let apart = vertices.len().div_ceil(SOME).max(1);
            balls.extend(vertices.iter().step_by(apart).map(|v| Ball { centre: v.position, radius: 0.0 }));
        }
        balls
    }

    /// The same of what throws a shadow: what is clear does not.
    pub(super) fn casters(&self, model: &Model, posture: &Posture, origin: DVec3) -> Surface {
        let mut surface = Surface::default();
        for worn in self.worn.iter().filter(|worn| worn.look.material.opacity != Opacity::Blend) {
            surface.append(worn.surface(model, posture, origin, 0));
        }
        surface
    }
}

impl Worn {
    fn surface(&self, model: &Model, posture: &Posture, origin: DVec3, part: usize) -> Surface {
        let Look { mesh, normals, places, tints, .. } = &self.look;
        // By body: from the world at the start to the world now.
        let moves: Vec<Pose> = model.bodies()[self.first..]
            .iter()
            .zip(&posture.bodies[self.first..])
            .map(|(body, now)| now.then(body.start.inverse()).then(self.place))
            .collect();
        let turns: Vec<Mat3> = moves.iter().map(|pose| Mat3::from_quat(pose.rotation.as_quat())).collect();
        let places_now: Vec<Vec3> = mesh
            .vertices
            .iter()
            .zip(&mesh.carried)
            .map(|(v, carried)| {
                let v = Vec3::from_array(*v).as_dvec3();
                let sum = shares(carried)
                    .map(|(body, share)| moves[body].transform_point(v) * f64::from(share))
                    .sum::<DVec3>();
                (sum - origin).as_vec3()
            })
            .collect();
        let mut surface = Surface::default();
        let coated = |i: usize| Coated {
            place: places.get(i).map_or(Vec2::ZERO, |place| Vec2::from_array(*place)),
            tint: tints.get(i).map_or(Vec4::ONE, |tint| Vec4::from_array(*tint)),
        };
        if normals.len() == places_now.len() {
            let normal = |(n, carried): (&[f32; 3], &Carried)| {
                let sum: Vec3 = shares(carried).map(|(body, share)| turns[body] * Vec3::from_array(*n) * share).sum();
                sum.normalize_or(Vec3::Y)
            };
            let normals = normals.iter().zip(&mesh.carried).map(normal);
            surface.vertices =
                places_now.iter().zip(normals).map(|(&position, normal)| Vertex { position, normal }).collect();
            surface.coated = (0..places_now.len()).map(coated).collect();
            surface.facets = mesh.triangles.iter().map(|t| Facet { corners: *t, part: part as u32 }).collect();
            return surface;
        }
        // Without normals triangles are flat, as glTF asks.
        for t in &mesh.triangles {
            let base = surface.vertices.len() as u32;
            let corners = t.map(|i| places_now[i as usize]);
            let normal = (corners[1] - corners[0]).cross(corners[2] - corners[0]).normalize_or(Vec3::Y);
            surface.vertices.extend(corners.map(|position| Vertex { position, normal }));
            surface.coated.extend(t.map(|i| coated(i as usize)));
            surface.facets.push(Facet { corners: [base, base + 1, base + 2], part: part as u32 });
        }
        surface
    }
}

/// The mean cosine of the angles between normals and triangles of a mesh; `None` without normals.
fn agreement(look: &Look) -> Option<f32> {
    let Look { mesh, normals, .. } = look;
    if normals.len() != mesh.vertices.len() || mesh.triangles.is_empty() {
        return None;
    }
    let cosine = |t: &[u32; 3]| {
        let face = across(look, t).normalize_or_zero();
        t.iter().map(|&i| face.dot(Vec3::from_array(normals[i as usize]))).sum::<f32>() / 3.0
    };
    Some(mesh.triangles.iter().map(cosine).sum::<f32>() / mesh.triangles.len() as f32)
}

/// Normals of the triangles round each vertex, by their areas.
fn smooth(look: &Look) -> Vec<[f32; 3]> {
    let mut normals = vec![Vec3::ZERO; look.mesh.vertices.len()];
    for t in &look.mesh.triangles {
        let face = across(look, t);
        t.iter().for_each(|&i| normals[i as usize] += face);
    }
    normals.into_iter().map(|normal| normal.normalize_or(Vec3::Y).to_array()).collect()
}

/// The normal of a triangle at the start, as long as twice its area.
fn across(look: &Look, t: &[u32; 3]) -> Vec3 {
    let [a, b, c] = t.map(|i| Vec3::from_array(look.mesh.vertices[i as usize]));
    (b - a).cross(c - a)
}

/// The bodies that carry a vertex, with their shares.
fn shares(carried: &Carried) -> impl Iterator<Item = (usize, f32)> {
    let Carried { bodies, weights } = *carried;
    bodies.into_iter().zip(weights).filter(|(_, weight)| *weight > 0.0).map(|(body, weight)| (body.index(), weight))
}

/// The meshes of a robot, in the colours that it has.
fn plain(imported: &Imported) -> Looks {
    let look = |mesh: &supple_assets::DrawnMesh| {
        let [r, g, b] = mesh.colour;
        let material = MaterialLook { colour: [r, g, b, 1.0], ..MaterialLook::default() };
        Look { mesh: mesh.clone(), material, ..Look::default() }
    };
    Looks { meshes: imported.meshes.iter().map(look).collect(), images: Vec::new() }
}
