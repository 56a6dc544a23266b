//! Touching the skin by hand: balls under the mouse that poke it, and vertices that are pulled.

use super::{Refused, Stage, Told, is_near};
use supple::Skin;
use supple::glam::DVec3;
use supple::skin::{Ball, Grab};

/// A ball moves by so many of its radii in a second at most: one that jumped would be inside the skin before it touches it.
const FASTEST: f64 = 30.0;
/// Radii that a ball may have \[m\].
const RADII: std::ops::RangeInclusive<f64> = 1e-4..=100.0;

/// A ball of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poke {
    /// Where it is \[m\].
    at: DVec3,
    /// Where it is wanted \[m\].
    wanted: DVec3,
    radius: f64,
}

impl Poke {
    /// The ball as it moves in a step of this length.
    fn ball(&self, dt: f64) -> Ball {
        let way = (self.wanted - self.at).clamp_length_max(FASTEST * self.radius * dt);
        Ball { centre: self.at + way, radius: self.radius, velocity: way / dt }
    }
}

impl Stage {
    fn skin(&self) -> Result<&Skin, Refused> {
        let none =
            "the scene has no skin to touch: open one that has, such as tube or deer, or give a character [skin]";
        self.scene.model.skin().ok_or_else(|| ("studio/value", none.into()))
    }

    /// Starts or moves a ball.
    pub(super) fn poke(&mut self, owner: (u64, u32), centre: DVec3, radius: f64) -> Result<Told, Refused> {
        self.skin()?;
        if !RADII.contains(&radius) {
            let what = format!(
                "the radius of a ball is {} m: give {} to {} m",
                supple_assets::plain(radius),
                RADII.start(),
                RADII.end()
            );
            return Err(("studio/value", what));
        }
        if !is_near(centre) {
            return Err(("studio/value", "the centre of a ball must lie within 1,000,000 m".into()));
        }
        let before = self.pokes.get(&owner).copied();
        let told = self.take_in_hand(before.is_none())?;
        let at = before.map_or(centre, |poke| poke.at);
        self.pokes.insert(owner, Poke { at, wanted: centre, radius });
        Ok(told)
    }

    /// Starts or moves a pull at a vertex.
    pub(super) fn grab(
        &mut self,
        owner: (u64, u32),
        vertex: u32,
        target: DVec3,
        strength: f64,
    ) -> Result<Told, Refused> {
        let vertices = self.skin()?.nodes();
        if vertex as usize >= vertices {
            return Err(("studio/value", format!("there is no vertex {vertex}: the skin has {vertices}")));
        }
        if !is_near(target) || !(0.0..=100.0).contains(&strength) {
            return Err(("studio/value", "a grab needs a target in metres and a strength up to 100".into()));
        }
        let told = self.take_in_hand(!self.grabs.contains_key(&owner))?;
        let stiffness = strength * self.grab_stiffness();
        let mass = self.scene.model.skin().map_or(0.0, |skin| skin.masses[vertex as usize]);
        let damping = 2.0 * (stiffness * mass).sqrt(); // critical for the vertex alone
        self.grabs.insert(owner, Grab { vertex, target, stiffness, damping });
        Ok(told)
    }

    /// Stiffness of a pull at the skin \[N/m\]: one that would carry the whole character at 20 cm of stretch.
    fn grab_stiffness(&self) -> f64 {
        self.scene.model.mass() * 9.81 / 0.2
    }

    /// Adds balls and grabs to the next input.
    pub(super) fn touch_skin(&mut self) {
        let input = &mut self.now.input;
        input.balls.extend(self.pokes.values().map(|poke| poke.ball(input.dt)));
        input.grabs.extend(self.grabs.values());
    }

    /// A step was done: balls are where it ended.
    pub(super) fn move_pokes(&mut self) {
        let dt = self.now.input.dt;
        self.pokes.values_mut().for_each(|poke| poke.at = poke.ball(dt).centre);
    }
}
