//! Soft skin for an imported character: its skinned meshes made into one closed surface, with the weights of the file.

use crate::inner::Inner;
use crate::{DrawnMesh, Imported, Note};
use glam::DVec3;
use supple::flesh::SurfaceMesh;
use supple::skin::layer::{self, Closed};
use supple::skin::{Core, INFLUENCES, Painted, SkinBone};
use supple::{BodyId, Contacts, ModelBuilder, NodeState, PoseMap, Scene, SkinMaterial, SkinSpec, State};

/// Vertices with the same weights are one only where they are also at the same place; surfaces with more vertices than this are refused.
const MOST_VERTICES: usize = 60_000;

/// How a character is given soft skin.
pub struct SkinPlan<'a> {
    /// What the flesh of a body is made of, by its name; `None` for bodies whose skin is fixed to them.
    pub flesh: &'a dyn Fn(&str) -> Option<SkinMaterial>,
    /// Painted vertex groups by name, with what is there instead.
    pub painted: Vec<(String, SkinMaterial)>,
    /// What the layer ends at; `None`: the depth of the material.
    pub inner: Option<Inner>,
    /// How bones carry the surface.
    pub map: PoseMap,
}

impl Imported {
    /// The same character in soft skin, or why not. `flesh` tells what the flesh of a body is made of; `None` for bodies whose skin is fixed to them.
    pub fn with_skin(&self, flesh: &dyn Fn(&str) -> Option<SkinMaterial>, map: PoseMap) -> Result<Imported, String> {
        self.with_planned_skin(&SkinPlan { flesh, painted: Vec::new(), inner: None, map })
    }

    /// The same character in soft skin as planned, or why not.
    pub fn with_planned_skin(&self, plan: &SkinPlan<'_>) -> Result<Imported, String> {
        let Scene { name, model, state, mut input, .. } = self.scene.clone();
        // Skin against skin costs seconds a step where a whole character folds: whoever wants it asks for it.
        input.contacts = Contacts::Obstacles;
        let mut notes = Vec::new();
        let mut note = |text: String| notes.push(Note { code: "import/skin", part: "skin".into(), text });
        let bones: Vec<SkinBone> = (0..model.bodies().len())
            .map(|i| SkinBone {
                body: BodyId(i as u32).into(),
                rest: None,
                flesh: (plan.flesh)(&model.bodies()[i].name),
                core: Core::Whole,
            })
            .collect();
        if bones.iter().all(|bone| bone.flesh.is_none()) && plan.painted.is_empty() {
            return Err("no bone has flesh, and nothing is painted".into());
        }
        let Closed { mut surface, made_of, caps, left_out, .. } = close_meshes(&self.meshes)?;
        if caps + left_out > 0 {
            note(format!("{caps} holes were closed and {left_out} double triangles left out to give it skin"));
        }
        let first = |of: &Vec<u32>| self.vertex(of[0]);
        surface.colours = made_of.iter().map(|of| first(of).0.colour).collect();
        let weights = made_of.iter().map(|of| self.mean_weights(of)).collect();
        let mut painted = Vec::with_capacity(plan.painted.len());
        for (name, material) in &plan.painted {
            let shares = self.shares(name, &made_of)?;
            painted.push(Painted { shares, material: *material });
        }
        let inner = match &plan.inner {
            Some(inner) => Some(inner.layer(&surface, &mut note)?),
            None => None,
        };
        let mut builder = ModelBuilder::from(&model);
        builder.skin(SkinSpec { surface, weights, bones, painted, map: plan.map, inner });
        let model =
            builder.build().map_err(|e| e.problems.iter().map(|p| p.what.clone()).collect::<Vec<_>>().join("; "))?;
        if let Some(skin) = model.skin()
            && !skin.layer.folded.is_empty()
        {
            note(format!(
                "{} of {} vertices lie where the surface folds back on itself: the skin is fixed there",
                skin.layer.folded.len(),
                skin.nodes()
            ));
        }
        let state = State { nodes: vec![NodeState::default(); model.nodes()], ..state };
        let scene = Scene::from_parts(name, model, state, input);
        Ok(Imported { scene, notes: self.notes.iter().cloned().chain(notes).collect(), ..self.clone() })
    }

    /// The names of what is painted on the meshes, in order.
    pub fn group_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.meshes.iter().flat_map(|m| &m.groups).map(|g| g.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a painted group of this name is there; `belly` also means `_BELLY`.
    pub fn has_group(&self, name: &str) -> bool {
        self.group_names().iter().any(|group| is_group(group, name))
    }

    /// The mesh of a vertex of all meshes one after another, and its number there.
    fn vertex(&self, mut v: u32) -> (&DrawnMesh, usize) {
        let mut at = 0;
        while at + 1 < self.meshes.len() && v as usize >= self.meshes[at].vertices.len() {
            v -= self.meshes[at].vertices.len() as u32;
            at += 1;
        }
        (&self.meshes[at], v as usize)
    }

    /// The mean weights of vertices, the strongest of them.
    fn mean_weights(&self, of: &[u32]) -> [(u32, f64); INFLUENCES] {
        let mut own: Vec<(u32, f64)> = Vec::new();
        for (mesh, v) in of.iter().map(|&v| self.vertex(v)) {
            let carried = &mesh.carried[v];
            for (body, weight) in carried.bodies.iter().zip(carried.weights) {
                match own.iter_mut().find(|(b, _)| *b == body.0) {
                    Some((_, w)) => *w += f64::from(weight),
                    None => own.push((body.0, f64::from(weight))),
                }
            }
        }
        own.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut strongest = [(0, 0.0); INFLUENCES];
        own.iter().zip(&mut strongest).for_each(|(from, to)| *to = *from);
        strongest
    }

    /// How much of a painted group each vertex of the closed surface has; meshes without it have none.
    fn shares(&self, name: &str, made_of: &[Vec<u32>]) -> Result<Vec<f64>, String> {
        if !self.has_group(name) {
            return Err(match self.group_names()[..] {
                [] => format!("there is no painted group \"{name}\": the meshes have none"),
                ref names => format!("there is no painted group \"{name}\", only {}", names.join(", ")),
            });
        }
        let share = |&v: &u32| {
            let (mesh, v) = self.vertex(v);
            let group = mesh.groups.iter().find(|group| is_group(&group.name, name));
            group.and_then(|group| group.shares.get(v)).map_or(0.0, |s| f64::from(*s))
        };
        Ok(made_of.iter().map(|of| of.iter().map(share).sum::<f64>() / of.len().max(1) as f64).collect())
    }
}

/// Whether a group of a file is meant by a name: capitals and the underscore before it do not matter.
fn is_group(group: &str, name: &str) -> bool {
    group.eq_ignore_ascii_case(name) || group.strip_prefix('_').is_some_and(|g| g.eq_ignore_ascii_case(name))
}

/// All meshes as one closed surface; its vertices are those of the meshes one after another.
pub(crate) fn close_meshes(meshes: &[DrawnMesh]) -> Result<Closed, String> {
    let SurfaceMesh { vertices, triangles, .. } = joined(meshes);
    if vertices.len() > MOST_VERTICES {
        return Err(format!("it has {} vertices, more than {MOST_VERTICES}", vertices.len()));
    }
    layer::close(&vertices, &triangles)
}

/// All meshes as they are, one after another.
pub(crate) fn joined(meshes: &[DrawnMesh]) -> SurfaceMesh {
    let mut all = SurfaceMesh::default();
    for mesh in meshes {
        let first = all.vertices.len() as u32;
        all.vertices.extend(mesh.vertices.iter().map(|p| DVec3::from_array(p.map(f64::from))));
        all.triangles.extend(mesh.triangles.iter().map(|t| t.map(|i| i + first)));
    }
    all
}
