//! Pictures as PNG, animations as GIF.

use crate::error::Error;
use crate::whole::WholeFile;
use color_quant::NeuQuant;
use std::io;
use std::path::{Path, PathBuf};

/// Rows of pixels in red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// A picture of one colour.
    pub(super) fn plain(width: usize, height: usize, colour: [u8; 3]) -> Picture {
        Picture { width, height, pixels: vec![colour; width * height] }
    }

    /// Puts another picture into this one, its left edge at this column.
    pub(super) fn paste(&mut self, other: &Picture, left: usize) {
        for (to, from) in self.pixels.chunks_exact_mut(self.width).zip(other.pixels.chunks_exact(other.width)) {
            to[left..left + other.width].copy_from_slice(from);
        }
    }
}

/// Writes a picture.
pub(super) fn write_png(path: &Path, picture: &Picture) -> Result<(), Error> {
    crate::output::write(path, |out| encode(out, picture))
}

/// The bytes of a picture's file.
pub(super) fn png(picture: &Picture) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    encode(&mut bytes, picture).map_err(|e| Error::failed("cli/output", format!("cannot draw a picture: {e}")))?;
    Ok(bytes)
}

fn encode(out: impl io::Write, picture: &Picture) -> io::Result<()> {
    let mut encoder = png::Encoder::new(out, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(picture.pixels.as_flattened())?;
    Ok(writer.finish()?)
}

/// An animation that is being written.
pub(super) struct Gif {
    path: PathBuf,
    encoder: gif::Encoder<WholeFile>,
    palette: Palette,
    /// What is on the screen, as places in the palette.
    shown: Vec<u8>,
    width: usize,
    height: usize,
}

impl Gif {
    /// Begins an animation that repeats for ever; its colours are chosen from some of its pictures.
    pub(super) fn create(path: &Path, some: &[Picture]) -> Result<Gif, Error> {
        let failed = |e: io::Error| Error::output(path, &e);
        let palette = Palette::of(some);
        let (width, height) = (some[0].width, some[0].height);
        let file = WholeFile::create(path).map_err(failed)?;
        let mut encoder =
            gif::Encoder::new(file, width as u16, height as u16, &palette.bytes()).map_err(|e| failed(plain(e)))?;
        encoder.set_repeat(gif::Repeat::Infinite).map_err(|e| failed(plain(e)))?;
        Ok(Gif { path: path.to_owned(), encoder, palette, shown: Vec::new(), width, height })
    }

    /// Adds a picture that is shown for so many hundredths of a second: only the part that changes.
    pub(super) fn add(&mut self, picture: &Picture, hundredths: u16) -> Result<(), Error> {
        let indices = self.palette.indices(picture);
        let (width, height) = (self.width, self.height);
        let differs = |k: usize| self.shown.get(k) != Some(&indices[k]);
        let changed: Vec<usize> = (0..indices.len()).filter(|&k| differs(k)).collect();
        let span = |at: fn(usize, usize) -> usize| {
            let low = changed.iter().map(|&k| at(k, width)).min().unwrap_or(0);
            let high = changed.iter().map(|&k| at(k, width)).max().unwrap_or(0);
            low..high + 1
        };
        let (columns, rows) = (span(|k, width| k % width), span(|k, width| k / width));
        debug_assert!(columns.end <= width && rows.end <= height);
        let mut buffer = Vec::with_capacity(columns.len() * rows.len());
        for row in rows.clone() {
            let at = row * width;
            buffer
                .extend(columns.clone().map(|column| if differs(at + column) { indices[at + column] } else { CLEAR }));
        }
        let frame = gif::Frame {
            delay: hundredths,
            dispose: gif::DisposalMethod::Keep,
            transparent: Some(CLEAR),
            left: columns.start as u16,
            top: rows.start as u16,
            width: columns.len() as u16,
            height: rows.len() as u16,
            buffer: buffer.into(),
            ..gif::Frame::default()
        };
        self.encoder.write_frame(&frame).map_err(|e| Error::output(&self.path, &plain(e)))?;
        self.shown = indices;
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<(), Error> {
        let end = || self.encoder.into_inner().map_err(plain)?.finish();
        end().map_err(|e| Error::output(&self.path, &e))
    }
}

/// What went wrong below the format.
fn plain(error: gif::EncodingError) -> io::Error {
    match error {
        gif::EncodingError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// The place in the palette that leaves a pixel as it was.
const CLEAR: u8 = 255;
/// Bits of each channel that a colour is looked up by.
const BITS: u32 = 7;

/// 255 colours, and for every colour the nearest of them once it was asked for.
struct Palette {
    colours: Vec<[u8; 3]>,
    nearest: Vec<Option<u8>>,
}

impl Palette {
    fn of(pictures: &[Picture]) -> Palette {
        let pixels = pictures.iter().flat_map(|picture| &picture.pixels);
        let rgba: Vec<u8> = pixels.flat_map(|&[r, g, b]| [r, g, b, 255]).collect();
        let colours = NeuQuant::new(3, usize::from(CLEAR), &rgba).color_map_rgb();
        Palette { colours: colours.as_chunks().0.to_vec(), nearest: vec![None; 1 << (3 * BITS)] }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.colours.as_flattened().to_vec();
        bytes.resize(3 * 256, 0);
        bytes
    }

    /// The picture in colours of the palette. A fixed pattern is added first, so that slow gradients show no steps.
    fn indices(&mut self, picture: &Picture) -> Vec<u8> {
        let mut indices = Vec::with_capacity(picture.pixels.len());
        for (k, pixel) in picture.pixels.iter().enumerate() {
            let offset = PATTERN[k / picture.width % 4][k % picture.width % 4];
            let colour = pixel.map(|v| (i32::from(v) + offset).clamp(0, 255) as u8);
            let key = colour.iter().fold(0, |key, v| key << BITS | usize::from(v >> (8 - BITS)));
            let colours = &self.colours;
            indices.push(*self.nearest[key].get_or_insert_with(|| nearest(colours, colour)));
        }
        indices
    }
}

/// Ordered dithering (Bayer), in steps of a byte.
const PATTERN: [[i32; 4]; 4] = [[-2, 0, -1, 1], [1, -1, 2, 0], [-1, 1, -2, 1], [2, 0, 1, -1]];

fn nearest(colours: &[[u8; 3]], colour: [u8; 3]) -> u8 {
    let distance = |other: &[u8; 3]| (0..3).map(|k| (i32::from(other[k]) - i32::from(colour[k])).pow(2)).sum::<i32>();
    (0..colours.len()).min_by_key(|&k| distance(&colours[k])).unwrap_or(0) as u8
}
