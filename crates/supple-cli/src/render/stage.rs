//! The stage: ground, background, and how parts look in its light.

use super::camera::View;
use super::coat::Coat;
use super::light::{Brightness, Light};
use super::raster::{Coated, Fragment, Shade, Surface};
use clap::ValueEnum;
use supple::glam::{Vec2, Vec3, Vec4};

/// The backgrounds by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Background {
    /// Pale ground and sky
    Light,
    /// Dark ground and sky
    Dark,
}

/// Colours of the stage, as in the studio.
struct Theme {
    top: u32,
    horizon: u32,
    ground: u32,
    line: u32,
    brightness: Brightness,
}

impl Background {
    fn theme(self) -> Theme {
        match self {
            Background::Light => Theme {
                top: 0xc3d6ea,
                horizon: 0xeef2f6,
                ground: 0xe6eaef,
                line: 0xbcc6d2,
                brightness: Brightness {
                    sun: Vec3::new(0.63, 0.615, 0.585),
                    sky: Vec3::new(0.40, 0.415, 0.44),
                    bounce: Vec3::new(0.26, 0.25, 0.24),
                },
            },
            Background::Dark => Theme {
                top: 0x11161d,
                horizon: 0x232a34,
                ground: 0x39414c,
                line: 0x56606e,
                brightness: Brightness {
                    sun: Vec3::new(0.68, 0.65, 0.60),
                    sky: Vec3::new(0.26, 0.29, 0.34),
                    bounce: Vec3::new(0.07, 0.07, 0.08),
                },
            },
        }
    }

    /// Between the moments of a strip.
    pub(super) fn gap(self) -> [u8; 3] {
        match self {
            Background::Light => [255; 3],
            Background::Dark => [13, 17, 23],
        }
    }
}

/// How a part looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paint {
    /// Linear red, green and blue.
    pub(super) colour: Vec3,
    pub(super) finish: Finish,
    /// What lies on it, of the coats of the stage.
    pub(super) coat: Option<u32>,
}

impl Paint {
    /// One colour in light and shadow.
    pub(super) fn solid(colour: Vec3) -> Paint {
        Paint { colour, finish: Finish::Solid, coat: None }
    }
}

/// Whether a part stands in the light of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// In light and shadow.
    Solid,
    /// Drawn over the others: always lit.
    Marking,
    /// As it is, whatever the light.
    Unlit,
}

/// Where everything stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Height of the ground \[m\].
    pub(super) ground: f32,
    /// The middle of the motion, from where the ground fades \[m\].
    pub(super) centre: Vec3,
    /// Half the diagonal of the motion's box \[m\].
    pub(super) radius: f32,
    /// What stands at the origin in the world, so that the grid stays where it is \[m\].
    pub(super) origin: Vec2,
}

/// Everything that colours a picture.
pub(super) struct Stage<'a> {
    view: &'a View,
    paints: &'a [Paint],
    coats: &'a [Coat],
    light: Light,
    place: Place,
    top: Vec3,
    horizon: Vec3,
    ground: Vec3,
    line: Vec3,
    /// Of the grid \[m\].
    cell: f32,
}

/// Direction towards the sun as the camera sees it: right, up, back.
const SUN: Vec3 = Vec3::new(-0.58, 1.15, 0.85);
/// Distances at which the ground begins and ends to fade, in radii of the motion.
const FADE: [f32; 2] = [1.6, 7.0];
/// Width of a line of the grid in cells; each fifth is twice as wide.
const LINE: f32 = 0.012;

impl Stage<'_> {
    /// A stage lit for this view; `casters` throw shadows.
    pub(super) fn new<'a>(
        view: &'a View,
        place: Place,
        background: Background,
        (paints, coats): (&'a [Paint], &'a [Coat]),
        casters: &Surface,
    ) -> Stage<'a> {
        let theme = background.theme();
        let back = Vec3::new(-view.forward.x, 0.0, -view.forward.z).normalize_or(Vec3::Z);
        let sun = (view.right * SUN.x + Vec3::Y * SUN.y + back * SUN.z).normalize();
        Stage {
            view,
            paints,
            coats,
            light: Light::new(sun, theme.brightness, casters, place.ground, view.width.max(view.height)),
            place,
            top: linear(theme.top),
            horizon: linear(theme.horizon),
            ground: linear(theme.ground),
            line: linear(theme.line),
            cell: round_length(0.4 * place.radius),
        }
    }

    /// Where the ray of a place on the picture meets the ground, seen from above.
    fn ground_at(&self, x: f32, y: f32) -> Option<Vec3> {
        let ray = self.view.ray(x, y);
        let share = (self.place.ground - self.view.eye.y) / ray.y;
        (ray.y < 0.0 && share > 0.0).then(|| self.view.eye + ray * share)
    }

    fn sky(&self, x: f32, y: f32) -> Vec3 {
        let up = self.view.ray(x, y).normalize().y.max(0.0);
        self.horizon.lerp(self.top, up.powf(0.6))
    }

    /// The share of a pixel that lines of the grid cover; `size` is that of the pixel on the ground.
    fn lines(&self, point: Vec2, size: Vec2) -> f32 {
        let cover = |period: f32, width: f32| {
            let [x, z] =
                [0, 1].map(|k| share_of_lines(point[k] / period, size[k] / period, width * self.cell / period));
            x + z - x * z
        };
        let (fine, strong) = (cover(self.cell, LINE), cover(5.0 * self.cell, 2.0 * LINE));
        fine.max(strong)
    }
}

/// The nearest of 1, 2 and 5 times a power of ten below a length.
fn round_length(length: f32) -> f32 {
    let power = 10f32.powf(length.log10().floor());
    [5.0, 2.0].into_iter().map(|n| n * power).find(|l| *l <= length).unwrap_or(power)
}

/// The share that lines of this width around every whole number have of a stretch of this size.
fn share_of_lines(middle: f32, size: f32, width: f32) -> f32 {
    // ∫ of the lines from 0 to x, moved by half a line.
    let until = |x: f32| x.floor() * width + x.rem_euclid(1.0).min(width);
    let (from, to) = (middle - 0.5 * size + 0.5 * width, middle + 0.5 * size + 0.5 * width);
    if size < 1e-6 { 0.0 } else { ((until(to) - until(from)) / size).clamp(0.0, 1.0) }
}

impl Shade for Stage<'_> {
    fn fragment(&self, fragment: &Fragment) -> Vec3 {
        let Paint { colour, finish, coat } = self.paints[fragment.part as usize];
        let Fragment { position, normal, tint, .. } = *fragment;
        let (colour, glow) = (colour * tint, coat.map_or(Vec3::ZERO, |coat| self.coats[coat as usize].glow));
        let received = match finish {
            Finish::Solid => self.light.received(position, normal),
            Finish::Marking => self.light.unhidden(normal),
            Finish::Unlit => return colour + glow,
        };
        // A dull highlight (Blinn–Phong), and a rim that mirrors the sky.
        let to_eye = (self.view.eye - position).normalize();
        let half = (to_eye + self.light.sun).normalize();
        let highlight = 0.10 * received.sun * normal.dot(half).max(0.0).powi(22);
        let rim = 0.16 * (1.0 - normal.dot(to_eye).clamp(0.0, 1.0)).powi(4) * (0.5 + 0.5 * normal.y);
        colour * received.light + Vec3::splat(highlight) + received.light * rim + glow
    }

    fn coat(&self, part: u32, coated: Coated) -> Option<Vec4> {
        let coat = self.paints[part as usize].coat?;
        Some(self.coats[coat as usize].at(coated))
    }

    fn is_clear(&self, part: u32) -> bool {
        self.paints[part as usize].coat.is_some_and(|coat| self.coats[coat as usize].is_clear())
    }

    fn behind(&self, x: f32, y: f32) -> Vec3 {
        let sky = self.sky(x, y);
        let Some(point) = self.ground_at(x, y) else { return sky };
        let distance = point.distance(self.place.centre) / self.place.radius;
        let [begin, end] = FADE;
        let fade = ((distance - begin) / (end - begin)).clamp(0.0, 1.0);
        let fade = fade * fade * (3.0 - 2.0 * fade);
        if fade >= 1.0 {
            return sky;
        }
        let size = match (self.ground_at(x + 1.0, y), self.ground_at(x, y - 1.0)) {
            (Some(right), Some(up)) => (right - point).abs() + (up - point).abs(),
            _ => Vec3::INFINITY,
        };
        let lines = self.lines(Vec2::new(point.x, point.z) + self.place.origin, Vec2::new(size.x, size.z));
        let colour = self.ground.lerp(self.line, 0.75 * lines);
        (colour * self.light.on_ground(point)).lerp(sky, fade)
    }
}

/// A colour `0xrrggbb` in linear light (sRGB).
pub(super) fn linear(hex: u32) -> Vec3 {
    let channel = |shift: u32| {
        let v = (hex >> shift & 255) as f32 / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    Vec3::new(channel(16), channel(8), channel(0))
}

/// Linear light as bytes (sRGB). What is brighter than [`SHOULDER`] comes ever nearer to white.
pub(super) fn encode(light: Vec3) -> [u8; 3] {
    const SHOULDER: f32 = 0.8;
    let peak = light.max_element();
    let mut colour = light;
    if peak > SHOULDER {
        // 1 − d²/(p − s + d), d = 1 − s: value and slope go on at s.
        let d = 1.0 - SHOULDER;
        colour *= (1.0 - d * d / (peak - SHOULDER + d)) / peak;
    }
    colour.to_array().map(|v| {
        let v = v.max(0.0);
        let coded = if v <= 0.0031308 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
        (255.0 * coded + 0.5) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_back_as_bytes() {
        for hex in [0x000000, 0x123456, 0x86b98f, 0xc0c0c0] {
            let [r, g, b] = encode(linear(hex)).map(u32::from);
            assert_eq!(r << 16 | g << 8 | b, hex);
        }
        // Brighter light is never darker, and comes near to white only.
        let greys: Vec<u8> = (0..200).map(|k| encode(Vec3::splat(0.02 * k as f32))[0]).collect();
        assert!(greys.is_sorted() && greys[199] > 245 && greys[50] < 245);
    }

    #[test]
    fn lines_have_their_share() {
        // On a line, beside it, across it, over many of them.
        assert!((share_of_lines(3.0, 0.01, 0.1) - 1.0).abs() < 1e-3);
        assert_eq!(share_of_lines(3.5, 0.1, 0.1), 0.0);
        assert!((share_of_lines(3.05, 0.1, 0.1) - 0.5).abs() < 1e-4);
        assert!((share_of_lines(0.0, 10.0, 0.1) - 0.1).abs() < 1e-5);
        assert!((share_of_lines(-2.0, 0.2, 0.1) - 0.5).abs() < 1e-4, "left of the origin too");
    }

    #[test]
    fn cells_have_round_lengths() {
        for (length, round) in [(0.7, 0.5), (1.0, 1.0), (4.9, 2.0), (5.1, 5.0), (0.021, 0.02)] {
            assert!((round_length(length) / round - 1.0).abs() < 1e-5, "{length}");
        }
    }
}
