//! The solver of a scene file, with its settings.

use super::Text;
use super::schema::{IntegrationName, SimulationEdit, SolverName, SpringsName, TreeSchemeName};
use crate::FileError;
use std::ops::Range as Span;
use supple::solver::Mode;
use supple::solver::reduced::{Integration, Springs};
use supple::{Assembly, Impulse, Reduced, Solver, Tree, TreeScheme};

/// The solver that a scene file asks for. Settings of one that does not run are refused: they would do nothing.
pub(super) fn solver(text: &Text<'_>, told: &SimulationEdit) -> Result<Solver, FileError> {
    let name = told.solver.unwrap_or(SolverName::Tree);
    let others = [
        (told.tree.as_ref().map(|t| t.span()), SolverName::Tree, "tree"),
        (told.impulse.as_ref().map(|t| t.span()), SolverName::Impulse, "impulse"),
        (told.assembly.as_ref().map(|t| t.span()), SolverName::Assembly, "assembly"),
        (told.reduced.as_ref().map(|t| t.span()), SolverName::Reduced, "reduced"),
    ];
    for (span, of, word) in others {
        if let Some(span) = span
            && of != name
        {
            let what = format!("these are settings of solver {word}, which does not run");
            return Err(text.wrong(span, what, format!("write solver = \"{word}\", or take them out")));
        }
    }
    let positive = |span: &Span<usize>, key: &str, value: Option<f64>, into: &mut f64| match value {
        Some(x) if !(x.is_finite() && x > 0.0) => {
            Err(text.wrong(span.clone(), format!("{key} is {x}"), "give a number above 0"))
        }
        Some(x) => {
            *into = x;
            Ok(())
        }
        None => Ok(()),
    };
    let whole = |span: &Span<usize>, key: &str, (low, high): (u32, u32), value: Option<u32>, into: &mut u32| match value
    {
        Some(n) if !(low..=high).contains(&n) => {
            Err(text.wrong(span.clone(), format!("{key} is {n}"), format!("give {low} to {high}")))
        }
        Some(n) => {
            *into = n;
            Ok(())
        }
        None => Ok(()),
    };
    Ok(match name {
        SolverName::Tree => {
            let mut tree = Tree::default();
            if let Some(told) = &told.tree {
                let (span, told) = (told.span(), told.get_ref());
                whole(&span, "depth", (3, 12), told.depth, &mut tree.depth)?;
                tree.scheme = told.scheme.map_or(tree.scheme, scheme);
            }
            Solver::Tree(tree)
        }
        SolverName::Impulse => {
            let mut impulse = Impulse::default();
            if let Some(told) = &told.impulse {
                let (span, told) = (told.span(), told.get_ref());
                positive(&span, "tolerance", told.tolerance, &mut impulse.tolerance)?;
                positive(&span, "velocity_tolerance", told.velocity_tolerance, &mut impulse.velocity_tolerance)?;
                whole(&span, "iterations", (1, 10_000), told.iterations, &mut impulse.iterations)?;
            }
            Solver::Impulse(impulse)
        }
        SolverName::Assembly => {
            let mut assembly = Assembly::default();
            if let Some(told) = &told.assembly {
                let (span, told) = (told.span(), told.get_ref());
                positive(&span, "tolerance", told.tolerance, &mut assembly.tolerance)?;
                whole(&span, "outer", (1, 10_000), told.outer, &mut assembly.outer)?;
                whole(&span, "inner", (1, 10_000), told.inner, &mut assembly.inner)?;
            }
            Solver::Assembly(assembly)
        }
        SolverName::Reduced => {
            let mut reduced = Reduced::default();
            if let Some(told) = &told.reduced {
                let told = told.get_ref();
                reduced.springs = match told.springs {
                    Some(SpringsName::Implicit) => Springs::Implicit,
                    Some(SpringsName::Explicit) => Springs::Explicit,
                    None => reduced.springs,
                };
                reduced.integration = match told.integration {
                    Some(IntegrationName::Euler) => Integration::Euler,
                    Some(IntegrationName::Midpoint) => Integration::Midpoint,
                    None => reduced.integration,
                };
            }
            Solver::Reduced(reduced)
        }
    })
}

fn scheme(name: TreeSchemeName) -> TreeScheme {
    match name {
        TreeSchemeName::Fast => TreeScheme::Midpoint(Mode::Fast),
        TreeSchemeName::Default => TreeScheme::Midpoint(Mode::Default),
        TreeSchemeName::Accurate => TreeScheme::Midpoint(Mode::Accurate),
        TreeSchemeName::Conservative => TreeScheme::Midpoint(Mode::Conservative),
        TreeSchemeName::Published => TreeScheme::Published,
        TreeSchemeName::Exact => TreeScheme::Exact,
        TreeSchemeName::Acceleration => TreeScheme::Acceleration,
    }
}
