//! What `supple inspect` tells of soft skin.

use crate::table::{count, figure, grouped};
use serde::Serialize;
use supple::{Model, Skin};

/// The soft layer of a model.
#[derive(Debug, Serialize)]
pub(crate) struct LayerEntry<'a> {
    /// Vertices of the surface.
    nodes: usize,
    /// Those that may move beside the bones.
    soft_nodes: usize,
    /// Those that are fixed because the surface folds there.
    folded_nodes: usize,
    tetrahedra: usize,
    /// Of what is soft, smallest, mean and largest \[m\].
    depth: [f64; 3],
    /// Of the vertices \[kg\].
    mass: f64,
    /// Bodies that soft vertices follow most.
    fleshed: Vec<&'a str>,
    /// Bodies under skin that is fixed to them.
    fixed: Vec<&'a str>,
}

impl<'a> LayerEntry<'a> {
    /// Of the skin of a model, if it has one.
    pub(crate) fn of(model: &'a Model) -> Option<LayerEntry<'a>> {
        let skin: &Skin = model.skin()?;
        let soft = || (0..skin.nodes()).filter(|v| skin.soft[*v]);
        let depths: Vec<f64> = soft().map(|v| skin.layer.depths[v]).collect();
        let mut has_flesh = vec![false; model.bodies().len()];
        soft().for_each(|v| has_flesh[skin.influences[v][0].body as usize] = true);
        let names = |fleshed: bool| {
            let bones = skin.bones.iter().filter(|b| has_flesh[**b as usize] == fleshed);
            bones.map(|b| model.bodies()[*b as usize].name.as_str()).collect::<Vec<_>>()
        };
        Some(LayerEntry {
            nodes: skin.nodes(),
            soft_nodes: depths.len(),
            folded_nodes: skin.layer.folded.len(),
            tetrahedra: skin.layer.tets.len(),
            depth: [
                depths.iter().copied().reduce(f64::min).unwrap_or(0.0),
                depths.iter().sum::<f64>() / depths.len().max(1) as f64,
                depths.iter().copied().reduce(f64::max).unwrap_or(0.0),
            ],
            mass: skin.masses.iter().sum(),
            fleshed: names(true),
            fixed: names(false),
        })
    }

    /// The same in words.
    pub(crate) fn words(&self) -> Vec<(&'static str, String)> {
        let [least, mean, most] = self.depth.map(|d| figure(1e3 * d));
        let bones = |names: &[&str]| match names.len() {
            0 => "none".to_owned(),
            n => format!("{n}: {}", names.join(", ")),
        };
        let folded = match self.folded_nodes {
            0 => String::new(),
            n => format!(", {} fixed where it folds", grouped(n)),
        };
        vec![
            (
                "soft skin",
                format!(
                    "{}, {} soft{folded}; {}",
                    count(self.nodes, "node", "nodes"),
                    grouped(self.soft_nodes),
                    count(self.tetrahedra, "tetrahedron", "tetrahedra")
                ),
            ),
            ("its depth", format!("{least} to {most} mm, {mean} mm on average")),
            ("its mass", format!("{} kg", figure(self.mass))),
            ("bones with flesh", bones(&self.fleshed)),
            ("bones without", bones(&self.fixed)),
        ]
    }
}
