//! Soft skin for an imported character: its skinned meshes made into one closed surface, with the weights of the file.

use crate::{Imported, Note};
use glam::DVec3;
use supple::flesh::SurfaceMesh;
use supple::skin::layer::{self, Closed};
use supple::skin::{Core, SkinBone};
use supple::{BodyId, ModelBuilder, NodeState, PoseMap, Scene, SkinMaterial, SkinSpec, State};

/// Vertices with the same weights are one only where they are also at the same place; surfaces with more vertices than this are refused.
const MOST_VERTICES: usize = 60_000;

impl Imported {
    /// The same character in soft skin, or why not. `flesh` tells what the flesh of a body is made of; `None` for bodies whose skin is fixed to them.
    pub fn with_skin(&self, flesh: &dyn Fn(&str) -> Option<SkinMaterial>, map: PoseMap) -> Result<Imported, String> {
        let Scene { name, model, state, input, .. } = self.scene.clone();
        let mut notes = Vec::new();
        let (surface, weights) = self.closed_surface(&mut notes)?;
        let bones: Vec<SkinBone> = (0..model.bodies().len())
            .map(|i| SkinBone {
                body: BodyId(i as u32).into(),
                rest: None,
                flesh: flesh(&model.bodies()[i].name),
                core: Core::Whole,
            })
            .collect();
        if bones.iter().all(|bone| bone.flesh.is_none()) {
            return Err("no bone has flesh".into());
        }
        let mut builder = ModelBuilder::from(&model);
        builder.skin(SkinSpec { surface, weights, bones, painted: Vec::new(), map, inner: None });
        let model =
            builder.build().map_err(|e| e.problems.iter().map(|p| p.what.clone()).collect::<Vec<_>>().join("; "))?;
        if let Some(skin) = model.skin()
            && !skin.layer.folded.is_empty()
        {
            let text = format!(
                "{} of {} vertices lie where the surface folds back on itself: the skin is fixed there",
                skin.layer.folded.len(),
                skin.nodes()
            );
            notes.push(Note { code: "import/skin", part: "skin".into(), text });
        }
        let state = State { nodes: vec![NodeState::default(); model.nodes()], ..state };
        let scene = Scene::from_parts(name, model, state, input);
        Ok(Imported { scene, notes: self.notes.iter().cloned().chain(notes).collect(), ..self.clone() })
    }

    /// All meshes as one closed surface, with the bodies that its vertices follow.
    #[allow(clippy::type_complexity)]
    fn closed_surface(&self, notes: &mut Vec<Note>) -> Result<(SurfaceMesh, Vec<[(u32, f64); 4]>), String> {
        let (mut vertices, mut triangles, mut carried, mut colours) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for mesh in &self.meshes {
            let first = vertices.len() as u32;
            vertices.extend(mesh.vertices.iter().map(|p| DVec3::from_array(p.map(f64::from))));
            triangles.extend(mesh.triangles.iter().map(|t| t.map(|i| i + first)));
            carried.extend_from_slice(&mesh.carried);
            colours.extend(std::iter::repeat_n(mesh.colour, mesh.vertices.len()));
        }
        if vertices.len() > MOST_VERTICES {
            return Err(format!("it has {} vertices, more than {MOST_VERTICES}", vertices.len()));
        }
        let Closed { mut surface, made_of, caps, left_out, .. } = layer::close(&vertices, &triangles)?;
        if caps + left_out > 0 {
            let text = format!("{caps} holes were closed and {left_out} double triangles left out to give it skin");
            notes.push(Note { code: "import/skin", part: "skin".into(), text });
        }
        surface.colours = made_of.iter().map(|of| colours[of[0] as usize]).collect();
        let weights = made_of
            .iter()
            .map(|of| {
                // the mean of what it stands for, the four strongest
                let mut own: Vec<(u32, f64)> = Vec::new();
                for carried in of.iter().map(|&v| carried[v as usize]) {
                    for (body, weight) in carried.bodies.iter().zip(carried.weights) {
                        match own.iter_mut().find(|(b, _)| *b == body.0) {
                            Some((_, w)) => *w += f64::from(weight),
                            None => own.push((body.0, f64::from(weight))),
                        }
                    }
                }
                own.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                let mut four = [(0, 0.0); 4];
                own.iter().zip(&mut four).for_each(|(from, to)| *to = *from);
                four
            })
            .collect();
        Ok((surface, weights))
    }
}
