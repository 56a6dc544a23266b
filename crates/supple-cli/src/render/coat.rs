//! What lies on a surface: the image of its material, cut out or clear where its opacity says so.

use super::raster::Coated;
use std::sync::{Arc, LazyLock};
use supple::glam::{Vec3, Vec4};
use supple_assets::{MaterialLook, Opacity, Wrap};

/// Most pixels of all images of a picture: a dozen of 4096 by 4096.
pub(super) const MOST_PIXELS: usize = 192 << 20;

/// An image in memory: red, green and blue as in the file (sRGB), and opacity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Image {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 4]>,
}

/// By byte of sRGB: linear light.
static LINEAR: LazyLock<[f32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|k| {
        let v = k as f32 / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    })
});

impl Image {
    /// A PNG or JPEG, told by its first bytes, or what is wrong with it. Its pixels are taken from those that are left.
    pub(super) fn read(bytes: &[u8], left: &mut usize) -> Result<Image, String> {
        match bytes {
            [] => Err("it is not there".into()),
            [0x89, b'P', b'N', b'G', ..] => Image::of_png(bytes, left),
            [0xff, 0xd8, ..] => Image::of_jpeg(bytes, left),
            _ => Err("it is neither PNG nor JPEG".into()),
        }
    }

    fn of_png(bytes: &[u8], left: &mut usize) -> Result<Image, String> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
        let (width, height) = (reader.info().width as usize, reader.info().height as usize);
        spend(width, height, left)?;
        let size = reader.output_buffer_size().ok_or("it is too large")?;
        let mut data = vec![0; size];
        let info = reader.next_frame(&mut data).map_err(|e| e.to_string())?;
        let data = &data[..info.buffer_size()];
        let pixels = match info.color_type {
            png::ColorType::GrayscaleAlpha => data.chunks_exact(2).map(|p| [p[0], p[0], p[0], p[1]]).collect(),
            png::ColorType::Rgba => data.chunks_exact(4).map(|p| [p[0], p[1], p[2], p[3]]).collect(),
            other => return Err(format!("its colours are {other:?}")),
        };
        Image::new(width, height, pixels)
    }

    fn of_jpeg(bytes: &[u8], left: &mut usize) -> Result<Image, String> {
        use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};
        let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().map_err(|e| e.to_string())?;
        let (width, height) = decoder.dimensions().ok_or("it has no size")?;
        spend(width, height, left)?;
        let data = decoder.decode().map_err(|e| e.to_string())?;
        Image::new(width, height, data.chunks_exact(3).map(|p| [p[0], p[1], p[2], 255]).collect())
    }

    fn new(width: usize, height: usize, pixels: Vec<[u8; 4]>) -> Result<Image, String> {
        if pixels.len() == width * height { Ok(Image { width, height, pixels }) } else { Err("it is cut off".into()) }
    }

    /// Between the four nearest pixels.
    fn at(&self, place: [f32; 2], wraps: [Wrap; 2]) -> Vec4 {
        let (x, y) = (place[0] * self.width as f32 - 0.5, place[1] * self.height as f32 - 0.5);
        let (left, top) = (x.floor(), y.floor());
        let pixel = |dx: f32, dy: f32| {
            let column = wrapped(left + dx, self.width, wraps[0]);
            let row = wrapped(top + dy, self.height, wraps[1]);
            let [r, g, b, a] = self.pixels[row * self.width + column];
            Vec4::new(LINEAR[r as usize], LINEAR[g as usize], LINEAR[b as usize], f32::from(a) / 255.0)
        };
        let row = |dy: f32| pixel(0.0, dy).lerp(pixel(1.0, dy), x - left);
        row(0.0).lerp(row(1.0), y - top)
    }
}

fn spend(width: usize, height: usize, left: &mut usize) -> Result<(), String> {
    let pixels = width.checked_mul(height).filter(|n| *n > 0);
    match pixels.and_then(|pixels| left.checked_sub(pixels)) {
        Some(rest) => *left = rest,
        None => return Err(format!("it has {width} × {height} pixels, and {left} are left")),
    }
    Ok(())
}

/// The row or column of an image for a whole number of them from its edge.
fn wrapped(at: f32, size: usize, wrap: Wrap) -> usize {
    let (at, size) = (at as i64, size as i64);
    let found = match wrap {
        Wrap::Repeat => at.rem_euclid(size),
        Wrap::Clamp => at.clamp(0, size - 1),
        Wrap::Mirror => {
            let round = at.rem_euclid(2 * size);
            round.min(2 * size - 1 - round)
        }
    };
    found as usize
}

/// What lies on a part.
#[derive(Clone, Debug)]
pub(super) struct Coat {
    image: Option<Arc<Image>>,
    material: MaterialLook,
    /// Light of its own, linear.
    pub(super) glow: Vec3,
}

impl Coat {
    pub(super) fn new(material: MaterialLook, image: Option<Arc<Image>>) -> Coat {
        Coat { image, material, glow: Vec3::from_array(material.glow) }
    }

    /// Colour and opacity. What is cut out has none.
    pub(super) fn at(&self, Coated { place, tint }: Coated) -> Vec4 {
        let image = self.image.as_ref().map_or(Vec4::ONE, |image| image.at(place.to_array(), self.material.wraps));
        let seen = image * tint;
        let opacity = match self.material.opacity {
            Opacity::Opaque => 1.0,
            Opacity::Cut(least) => f32::from(seen.w * self.material.colour[3] >= least),
            Opacity::Blend => seen.w * self.material.colour[3],
        };
        seen.truncate().extend(opacity)
    }

    pub(super) fn is_clear(&self) -> bool {
        self.material.opacity != Opacity::Opaque
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supple::glam::Vec2;

    fn checks() -> Arc<Image> {
        let (black, white) = ([0, 0, 0, 255], [255, 255, 255, 0]);
        Arc::new(Image::new(2, 2, vec![black, white, white, black]).unwrap())
    }

    #[test]
    fn an_image_has_its_pixels_in_their_middles_and_goes_on_beyond_its_edge() {
        let image = checks();
        let at = |u: f32, v: f32, wrap: Wrap| image.at([u, v], [wrap; 2]).x;
        for (u, v, expected) in [(0.25, 0.25, 0.0), (0.75, 0.25, 1.0), (0.5, 0.25, 0.5)] {
            assert!((at(u, v, Wrap::Clamp) - expected).abs() < 1e-6, "{u} {v}");
        }
        // One column to the left of the first: the last, the first again, the first again.
        assert_eq!((at(-0.25, 0.25, Wrap::Repeat), at(-0.25, 0.25, Wrap::Clamp)), (1.0, 0.0));
        assert_eq!((at(-0.25, 0.25, Wrap::Mirror), at(-0.75, 0.25, Wrap::Mirror)), (0.0, 1.0));
    }

    #[test]
    fn what_is_cut_out_or_clear_has_no_opacity_there() {
        let coat = |opacity: Opacity| Coat::new(MaterialLook { opacity, ..MaterialLook::default() }, Some(checks()));
        let on = |coat: &Coat, u: f32| coat.at(Coated { place: Vec2::new(u, 0.25), tint: Vec4::ONE }).w;
        let (opaque, cut, blend) = (coat(Opacity::Opaque), coat(Opacity::Cut(0.5)), coat(Opacity::Blend));
        assert_eq!((on(&opaque, 0.75), on(&cut, 0.75), on(&cut, 0.25), on(&blend, 0.5)), (1.0, 0.0, 1.0, 0.5));
        assert!(!opaque.is_clear() && cut.is_clear() && blend.is_clear());
    }

    #[test]
    fn images_that_are_none_are_refused() {
        for bytes in [&b""[..], b"RIFF", &[0x89, b'P', b'N', b'G', 1, 2], &[0xff, 0xd8, 0xff, 0]] {
            assert!(Image::read(bytes, &mut MOST_PIXELS.clone()).is_err(), "{bytes:?}");
        }
    }
}
