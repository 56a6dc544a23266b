//! The camera: where it stands, and how points come onto the picture.

use crate::error::Error;
use crate::settings;
use supple::glam::{Vec2, Vec3};

/// A round part of the character, for what must be seen; a corner has radius 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ball {
    /// \[m\]
    pub(super) centre: Vec3,
    /// \[m\]
    pub(super) radius: f32,
}

/// From where to look, as `--camera` gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Camera {
    /// From the front (+Z) towards the character's left (+X) \[rad\].
    pub(super) yaw: f32,
    /// Above the horizon \[rad\].
    pub(super) pitch: f32,
    /// How much larger than what fits.
    pub(super) zoom: f32,
}

impl Default for Camera {
    /// As the studio looks.
    fn default() -> Camera {
        Camera { yaw: 29f32.to_radians(), pitch: 18f32.to_radians(), zoom: 1.0 }
    }
}

impl Camera {
    /// Reads `yaw`, `yaw,pitch` or `yaw,pitch,zoom`, angles in degrees.
    pub(super) fn parse(text: &str) -> Result<Camera, Error> {
        let wrong = || {
            Error::setting(
                format!("--camera cannot be \"{text}\""),
                "give degrees and a factor: yaw,pitch,zoom such as 29,18,1, pitch from -89 to 89, zoom from 0.05 to 50",
            )
        };
        let numbers: Vec<f32> = text
            .split(',')
            .map(|part| settings::number(part).map(|x| x as f32))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let mut camera = Camera::default();
        match numbers[..] {
            [yaw] => camera.yaw = yaw.to_radians(),
            [yaw, pitch] => (camera.yaw, camera.pitch) = (yaw.to_radians(), pitch.to_radians()),
            [yaw, pitch, zoom] => camera = Camera { yaw: yaw.to_radians(), pitch: pitch.to_radians(), zoom },
            _ => return Err(wrong()),
        }
        let sound = camera.yaw.is_finite()
            && camera.pitch.abs() <= 89.01f32.to_radians()
            && (0.05..=50.0).contains(&camera.zoom);
        if sound { Ok(camera) } else { Err(wrong()) }
    }

    /// The view of a picture of this size that sees all balls, as large as can be.
    ///
    /// With coordinates `x` right and `z` away from the camera, the camera at `(c, −d)` sees a point within the slope `t` when
    /// `|x − c| ≤ (z + d) t`. With `a = max(x − z t)` and `b = max(−x − z t)` that is `a − c ≤ d t` and `b + c ≤ d t`: the nearest camera
    /// has `c = (a − b)/2` and `d = (a + b)/2t`. The same holds upwards; the larger of both distances serves.
    pub(super) fn fit(&self, balls: &[Ball], width: usize, height: usize) -> View {
        let (sin_yaw, cos_yaw) = self.yaw.sin_cos();
        let (sin_pitch, cos_pitch) = self.pitch.sin_cos();
        let back = Vec3::new(sin_yaw * cos_pitch, sin_pitch, cos_yaw * cos_pitch);
        let right = Vec3::new(cos_yaw, 0.0, -sin_yaw);
        let (up, forward) = (back.cross(right), -back);

        let slope = (0.5 * FIELD).tan();
        let most = |direction: Vec3| {
            let length = direction.length();
            balls.iter().map(|b| b.centre.dot(direction) + b.radius * length).fold(f32::NEG_INFINITY, f32::max)
        };
        let along = |axis: Vec3, slope: f32| {
            let (a, b) = (most(axis - forward * slope), most(-axis - forward * slope));
            (0.5 * (a - b), 0.5 * (a + b) / slope)
        };
        let aspect = width as f32 / height as f32;
        let (aside, x_distance) = along(right, slope * aspect * FILLED);
        let (above, y_distance) = along(up, slope * FILLED);
        let distance = x_distance.max(y_distance);
        let eye = right * aside + up * above - forward * distance;
        let size = (0..3).map(|k| most(Vec3::AXES[k]) + most(-Vec3::AXES[k])).fold(0.0, f32::max);
        let focal = self.zoom * 0.5 * height as f32 / slope;
        View { width, height, eye, right, up, forward, focal, near: 1e-3 * size.max(f32::MIN_POSITIVE) }
    }
}

/// The angle that the height of the picture takes \[rad\].
const FIELD: f32 = 0.56;
/// How much of the picture's width and height the character takes at most.
const FILLED: f32 = 0.86;

/// A camera that stands somewhere, and its picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// \[pixels\]
    pub(super) width: usize,
    pub(super) height: usize,
    /// Where the camera stands \[m\].
    pub(super) eye: Vec3,
    pub(super) right: Vec3,
    pub(super) up: Vec3,
    pub(super) forward: Vec3,
    /// Pixels per unit of slope.
    pub(super) focal: f32,
    /// What is nearer than this is not seen \[m\].
    pub(super) near: f32,
}

impl View {
    /// A point before the camera: right, up, away.
    pub(super) fn before(&self, point: Vec3) -> Vec3 {
        let p = point - self.eye;
        Vec3::new(p.dot(self.right), p.dot(self.up), p.dot(self.forward))
    }

    /// The place on the picture of a point before the camera \[pixels\], Y down.
    pub(super) fn pixel(&self, place: Vec3) -> Vec2 {
        let scale = self.focal / place.z;
        Vec2::new(0.5 * self.width as f32 + scale * place.x, 0.5 * self.height as f32 - scale * place.y)
    }

    /// The slopes at which the picture ends, right and up.
    pub(super) fn reach(&self) -> Vec2 {
        Vec2::new(self.width as f32, self.height as f32) * (0.5 / self.focal)
    }

    /// The direction of a place on the picture, 1 m along the view.
    pub(super) fn ray(&self, x: f32, y: f32) -> Vec3 {
        let (x, y) = (x - 0.5 * self.width as f32, 0.5 * self.height as f32 - y);
        self.forward + (self.right * x + self.up * y) / self.focal
    }
}
