//! Inputs as version 8 of the format had them: every setting by its place. Files of that version are read, and written anew by key.

use super::TakeError;
use super::encode::Bytes;
use crate::contact::Penalty;
use crate::flesh::Diagonalize;
use crate::input::{Contacts, FleshCoupling, Input};
use crate::maths::lanes::Instructions;
use crate::skin::{SkinDynamics, SkinEquations, SkinMass, SkinResponse, SkinSettings};
use crate::solver::assembly::{Cut, Linear, Scheme};
use crate::solver::impulse::{Elimination, Variant, VelocityCorrection};
use crate::solver::reduced::{Balance, Integration, Springs};
use crate::solver::{Assembly, ContactLaw, Impulse, Impulses, Mode, Reduced, Solver, Threads, Tree, TreeScheme};

impl Bytes<'_> {
    pub(super) fn settings_of_eight(&mut self, input: &mut Input) -> Result<(), TakeError> {
        input.dt = self.f64()?;
        input.substeps = self.u32()?;
        input.solver = self.solver()?;
        input.gravity = self.vec3()?;
        input.stiffness_scale = self.f64()?;
        input.damping_scale = self.f64()?;
        input.torques = self.flag()?;
        (input.contacts, input.flesh) = self.choice(&TOUCHING)?;
        Ok(())
    }

    pub(super) fn skin_of_eight(&mut self) -> Result<SkinSettings, TakeError> {
        Ok(SkinSettings {
            refinements: self.u32()?,
            response: self.choice(&RESPONSES)?,
            mass: self.choice(&MASSES)?,
            equations: self.choice(&EQUATIONS)?,
            dynamics: self.choice(&DYNAMICS)?,
        })
    }

    fn solver(&mut self) -> Result<Solver, TakeError> {
        Ok(match self.choice(&[0, 1, 2, 3])? {
            0 => {
                let depth = self.u32()?;
                Solver::Tree(Tree {
                    scheme: self.choice(&SCHEMES)?,
                    depth,
                    instructions: self.choice(&INSTRUCTIONS)?,
                    threads: self.choice(&THREADS)?,
                    impulses: self.choice(&IMPULSES)?,
                    contacts: match self.choice(&[0, 1])? {
                        0 => ContactLaw::OfScheme,
                        _ => ContactLaw::Penalty(self.penalty()?),
                    },
                })
            }
            1 => Solver::Impulse(Impulse {
                variant: self.choice(&VARIANTS)?,
                elimination: self.choice(&ELIMINATIONS)?,
                tolerance: self.f64()?,
                velocity_tolerance: self.f64()?,
                velocity_correction: self.choice(&CORRECTIONS)?,
                iterations: self.u32()?,
            }),
            2 => Solver::Assembly(Assembly {
                scheme: self.choice(&ASSEMBLY_SCHEMES)?,
                outer: self.u32()?,
                inner: self.u32()?,
                tolerance: self.f64()?,
                truncation: self.f64()?,
                cut: self.choice(&CUTS)?,
                linear: self.choice(&LINEARS)?,
            }),
            _ => Solver::Reduced(Reduced {
                springs: self.choice(&SPRINGS)?,
                integration: self.choice(&INTEGRATIONS)?,
                balance: self.choice(&BALANCES)?,
                contacts: self.penalty()?,
                diagonalize: self.choice(&DIAGONALIZE)?,
            }),
        })
    }
    fn penalty(&mut self) -> Result<Penalty, TakeError> {
        Ok(Penalty { stiffness: self.f64()?, slip: self.f64()? })
    }
}

// The settings by the number that stands for them.
const SCHEMES: [TreeScheme; 7] = [
    TreeScheme::Published,
    TreeScheme::Exact,
    TreeScheme::Acceleration,
    TreeScheme::Midpoint(Mode::Fast),
    TreeScheme::Midpoint(Mode::Default),
    TreeScheme::Midpoint(Mode::Accurate),
    TreeScheme::Midpoint(Mode::Conservative),
];
/// What touches what, and how flesh is solved.
const TOUCHING: [(Contacts, FleshCoupling); 6] = [
    (Contacts::Off, FleshCoupling::Together),
    (Contacts::Obstacles, FleshCoupling::Together),
    (Contacts::All, FleshCoupling::Together),
    (Contacts::Off, FleshCoupling::Loose),
    (Contacts::Obstacles, FleshCoupling::Loose),
    (Contacts::All, FleshCoupling::Loose),
];
const INSTRUCTIONS: [Instructions; 2] = [Instructions::Best, Instructions::Baseline];
const THREADS: [Threads; 2] = [Threads::One, Threads::Many];
const IMPULSES: [Impulses; 2] = [Impulses::Skip, Impulses::Keep];
const VARIANTS: [Variant; 3] = [Variant::System, Variant::JointByJoint, Variant::SplitLoops];
const ELIMINATIONS: [Elimination; 3] = [Elimination::Automatic, Elimination::Joints, Elimination::Bodies];
const CORRECTIONS: [VelocityCorrection; 2] = [VelocityCorrection::On, VelocityCorrection::Off];
const ASSEMBLY_SCHEMES: [Scheme; 4] = [Scheme::Displacements, Scheme::Projected, Scheme::Baumgarte, Scheme::Posing];
const CUTS: [Cut; 3] = [Cut::EachBody, Cut::Whole, Cut::Resisted];
const LINEARS: [Linear; 2] = [Linear::Factored, Linear::Plain];
const SPRINGS: [Springs; 2] = [Springs::Implicit, Springs::Explicit];
const INTEGRATIONS: [Integration; 2] = [Integration::Euler, Integration::Midpoint];
const BALANCES: [Balance; 2] = [Balance::On, Balance::Off];
const RESPONSES: [SkinResponse; 2] = [SkinResponse::Complementary, SkinResponse::Published];
const MASSES: [SkinMass; 2] = [SkinMass::Full, SkinMass::BlockDiagonal];
const EQUATIONS: [SkinEquations; 2] = [SkinEquations::Factored, SkinEquations::ConjugateGradients];
const DYNAMICS: [SkinDynamics; 2] = [SkinDynamics::Soft, SkinDynamics::Carried];
const DIAGONALIZE: [Diagonalize; 2] = [Diagonalize::Selective, Diagonalize::Always];
