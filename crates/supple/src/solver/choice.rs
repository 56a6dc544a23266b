//! The solvers as a list to choose from, for menus.

use super::impulse::Variant;
use super::reduced::Integration;
use super::{Assembly, Impulse, Mode, Reduced, Solver, Tree, TreeScheme};

/// A solver, with one of its schemes or modes, as a line of a menu.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// `tree:default`: the solver, and after a colon what it calls the variant.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// With the usual settings.
    pub solver: Solver,
}

impl Solver {
    /// What there is to choose from, the default first.
    pub fn choices() -> Vec<Choice> {
        let tree = |name, scheme, summary| Choice { name, summary, solver: Solver::Tree(Tree::new(scheme)) };
        let reduced = |name, integration, summary| {
            let solver = Solver::Reduced(Reduced { integration, ..Reduced::default() });
            Choice { name, summary, solver }
        };
        let impulse = |name, variant, summary| {
            let solver = Solver::Impulse(Impulse { variant, ..Impulse::default() });
            Choice { name, summary, solver }
        };
        vec![
            tree(
                "tree:default",
                TreeScheme::Midpoint(Mode::Default),
                "midpoint step: joints closed, energy bounded, second order",
            ),
            tree("tree:fast", TreeScheme::Midpoint(Mode::Fast), "midpoint step with larger parts"),
            tree("tree:accurate", TreeScheme::Midpoint(Mode::Accurate), "midpoint step with smaller parts"),
            tree(
                "tree:conservative",
                TreeScheme::Midpoint(Mode::Conservative),
                "midpoint step that adds no damping of its own and keeps the energy",
            ),
            tree(
                "tree:published",
                TreeScheme::Published,
                "the step of Hernández 2011: one factorisation, damps, joints open a little",
            ),
            tree("tree:exact", TreeScheme::Exact, "the published step with exact derivatives of joint torques"),
            tree(
                "tree:acceleration",
                TreeScheme::Acceleration,
                "the explicit form that the paper improves on: stiff joints explode, which is what it shows",
            ),
            impulse(
                "impulse:system",
                Variant::System,
                "joints held by impulses [Bender 2006], one sparse system an iteration: takes loops",
            ),
            impulse(
                "impulse:joint_by_joint",
                Variant::JointByJoint,
                "joints held by impulses, one joint after another",
            ),
            impulse(
                "impulse:split_loops",
                Variant::SplitLoops,
                "joints held by impulses, those that close loops by a system of their own, in turn [Bender 2006, §4.6]",
            ),
            Choice {
                name: "assembly",
                summary: "displacements, corrected until the joints are closed [Faure 1998]: takes loops and broken poses",
                solver: Solver::Assembly(Assembly::default()),
            },
            reduced(
                "reduced:euler",
                Integration::Euler,
                "joint coordinates [Kim 2008]: no joint can open; first order, damps stiff springs",
            ),
            reduced("reduced:midpoint", Integration::Midpoint, "joint coordinates, second order"),
        ]
    }

    /// The choice of this name, with what else is set here kept where it has a meaning there.
    pub fn choose(&self, name: &str) -> Option<Solver> {
        let chosen = Solver::choices().into_iter().find(|choice| choice.name == name)?.solver;
        Some(match (*self, chosen) {
            (Solver::Tree(now), Solver::Tree(chosen)) => Solver::Tree(Tree { scheme: chosen.scheme, ..now }),
            (Solver::Impulse(now), Solver::Impulse(chosen)) => {
                Solver::Impulse(Impulse { variant: chosen.variant, ..now })
            }
            (Solver::Reduced(now), Solver::Reduced(chosen)) => {
                Solver::Reduced(Reduced { integration: chosen.integration, ..now })
            }
            _ => chosen,
        })
    }

    /// The name among the [choices](Solver::choices) that this is, further settings aside; of what is not among them, the solver's.
    pub fn choice(&self) -> &'static str {
        let same = |choice: &Choice| match (*self, choice.solver) {
            (Solver::Tree(a), Solver::Tree(b)) => a.scheme == b.scheme,
            (Solver::Impulse(a), Solver::Impulse(b)) => a.variant == b.variant,
            (Solver::Assembly(a), Solver::Assembly(b)) => a.scheme == b.scheme,
            (Solver::Reduced(a), Solver::Reduced(b)) => a.integration == b.integration,
            _ => false,
        };
        Solver::choices().into_iter().find(same).map_or(self.name(), |choice| choice.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choosing_and_telling_agree_and_keep_other_settings() {
        let mut solver = Solver::Tree(Tree { depth: 5, ..Tree::default() });
        assert_eq!(Solver::choices()[0].solver, Solver::default());
        for choice in Solver::choices() {
            solver = solver.choose(choice.name).unwrap();
            assert_eq!(solver.choice(), choice.name);
            assert!(choice.name.starts_with(solver.name()));
            if let Solver::Tree(tree) = solver {
                assert_eq!(tree.depth, 5, "{}", choice.name);
            }
        }
        assert_eq!(solver.choose("tree:nonsense"), None);
    }
}
