//! Clips: what nodes do over time. STEP, LINEAR and CUBICSPLINE.

use super::document::{Document, Part};
use crate::{FileError, Note};
use glam::{DAffine3, DQuat, DVec3};

/// An animation of the file.
#[derive(Debug)]
pub(crate) struct Clip {
    pub(crate) name: String,
    /// The time of its last key \[s\].
    pub(crate) end: f64,
    tracks: Vec<Track>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Translation,
    Rotation,
    Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Step,
    Linear,
    Cubic,
}

/// One property of one node over time.
#[derive(Debug)]
struct Track {
    node: usize,
    path: Path,
    between: Between,
    /// \[s\], rising.
    times: Vec<f32>,
    /// Three or four numbers a key; of cubic ones tangent, value, tangent.
    values: Vec<f32>,
}

/// No clip goes on for longer \[s\].
const MAX_SECONDS: f64 = 3600.0;

impl Document {
    /// The clips that move nodes; weights of morph targets are left to the file.
    pub(crate) fn clips(&self, notes: &mut Vec<Note>) -> Result<Vec<Clip>, FileError> {
        let reader = self.reader();
        let mut clips = Vec::new();
        for (i, animation) in self.root().animations.iter().enumerate() {
            let name = animation.name.clone().filter(|n| !n.is_empty()).unwrap_or_else(|| format!("clip {i}"));
            let mut clip = Clip { name, end: 0.0, tracks: Vec::new() };
            let mut morphs = false;
            for (k, channel) in animation.channels.iter().enumerate() {
                let place = format!("animations[{i}].channels[{k}]");
                let bad = |what: String| {
                    FileError::new("file/animation", &self.path, what, "export the file again").at(place.clone())
                };
                let path = match channel.target.path.as_str() {
                    "translation" => Path::Translation,
                    "rotation" => Path::Rotation,
                    "scale" => Path::Scale,
                    _ => {
                        morphs |= channel.target.path == "weights";
                        continue;
                    }
                };
                let Some(node) = channel.target.node else { continue };
                let sampler = &animation.samplers[channel.sampler];
                let between = match sampler.interpolation.as_deref() {
                    None | Some("LINEAR") => Between::Linear,
                    Some("STEP") => Between::Step,
                    Some("CUBICSPLINE") => Between::Cubic,
                    Some(other) => return Err(bad(format!("there is no interpolation \"{other}\""))),
                };
                let times = reader.floats(sampler.input, &["SCALAR"])?;
                let values =
                    reader.floats(sampler.output, if path == Path::Rotation { &["VEC4"] } else { &["VEC3"] })?;
                let width = if path == Path::Rotation { 4 } else { 3 };
                let keys = if between == Between::Cubic { 3 } else { 1 };
                if times.is_empty() || !times.is_sorted_by(|a, b| a < b) || times[0] < 0.0 {
                    return Err(bad("its times do not rise from 0".into()));
                }
                if values.len() < times.len() * width * keys {
                    return Err(bad(format!("it has {} keys and {} numbers", times.len(), values.len())));
                }
                clip.end = clip.end.max(f64::from(times[times.len() - 1]));
                clip.tracks.push(Track { node, path, between, times, values });
            }
            if clip.end > MAX_SECONDS {
                let text = format!("it lasts {} s: what comes after {MAX_SECONDS} s is left out", clip.end);
                notes.push(Note { code: "import/clip", part: clip.name.clone(), text });
                clip.end = MAX_SECONDS;
            }
            if morphs {
                let text = "it moves morph targets: they stay in the file, and are not simulated".into();
                notes.push(Note { code: "import/morph", part: clip.name.clone(), text });
            }
            if !clip.tracks.is_empty() {
                clips.push(clip);
            }
        }
        Ok(clips)
    }
}

impl Clip {
    /// The nodes that it moves.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.tracks.iter().map(|track| track.node)
    }

    /// The places of all nodes in the world at a time \[s\].
    pub(crate) fn world(&self, document: &Document, time: f64) -> Vec<DAffine3> {
        let mut local = document.local.clone();
        for track in &self.tracks {
            let value = track.at(time);
            // A node given by a matrix that is not scale, rotation and translation cannot be moved: the format forbids it.
            if let Part::Steps { translation, rotation, scale } = &mut local[track.node] {
                let vector = DVec3::new(value[0], value[1], value[2]);
                match track.path {
                    Path::Translation => *translation = vector,
                    Path::Scale => *scale = vector,
                    Path::Rotation => {
                        let q = DQuat::from_array(value);
                        // A key that is no rotation leaves the node as it was.
                        if q.length_squared() > 1e-12 {
                            *rotation = q.normalize();
                        }
                    }
                }
            }
        }
        document.world_of(&local)
    }
}

impl Track {
    fn at(&self, time: f64) -> [f64; 4] {
        let width = if self.path == Path::Rotation { 4 } else { 3 };
        let per_key = if self.between == Between::Cubic { 3 * width } else { width };
        let read = |key: usize, part: usize| -> [f64; 4] {
            let at = key * per_key + part * width;
            std::array::from_fn(|i| if i < width { f64::from(self.values[at + i]) } else { 0.0 })
        };
        let value = |key: usize| read(key, if self.between == Between::Cubic { 1 } else { 0 });
        let next = self.times.partition_point(|t| f64::from(*t) <= time);
        if next == 0 || next == self.times.len() {
            return value(next.saturating_sub(1));
        }
        let (k, from, to) = (next - 1, f64::from(self.times[next - 1]), f64::from(self.times[next]));
        let span = to - from;
        let u = (time - from) / span;
        let (a, mut b) = (value(k), value(next));
        match self.between {
            Between::Step => a,
            Between::Linear if self.path == Path::Rotation => {
                // Along the shorter arc.
                let (p, mut q) = (DQuat::from_array(a), DQuat::from_array(b));
                if p.length_squared() < 1e-12 || q.length_squared() < 1e-12 {
                    return a;
                }
                if p.dot(q) < 0.0 {
                    q = -q;
                }
                p.normalize().slerp(q.normalize(), u).to_array()
            }
            Between::Linear => std::array::from_fn(|i| a[i] + u * (b[i] - a[i])),
            Between::Cubic => {
                // p = (2u³ − 3u² + 1) p_k + (u³ − 2u² + u) t m_k + (3u² − 2u³) p_{k+1} + (u³ − u²) t m_{k+1}
                let (out, into) = (read(k, 2), read(next, 0));
                let (u2, u3) = (u * u, u * u * u);
                let weights =
                    [2.0 * u3 - 3.0 * u2 + 1.0, span * (u3 - 2.0 * u2 + u), 3.0 * u2 - 2.0 * u3, span * (u3 - u2)];
                for i in 0..4 {
                    b[i] = weights[0] * a[i] + weights[1] * out[i] + weights[2] * b[i] + weights[3] * into[i];
                }
                b
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(path: Path, between: Between, times: &[f32], values: &[f32]) -> Track {
        Track { node: 0, path, between, times: times.to_vec(), values: values.to_vec() }
    }

    #[test]
    fn each_interpolation_is_that_of_the_format() {
        let keys: [f32; 6] = [0.0, 0.0, 0.0, 2.0, 4.0, 6.0];
        let step = track(Path::Translation, Between::Step, &[1.0, 3.0], &keys);
        assert_eq!(step.at(2.9), [0.0; 4]);
        assert_eq!(step.at(3.0), [2.0, 4.0, 6.0, 0.0]);
        let linear = track(Path::Translation, Between::Linear, &[1.0, 3.0], &keys);
        assert_eq!(linear.at(2.0), [1.0, 2.0, 3.0, 0.0]);
        assert_eq!((linear.at(-5.0), linear.at(9.0)), ([0.0; 4], [2.0, 4.0, 6.0, 0.0]));
        // Tangents 3 and 5 a second over 2 s, values 1 and 2: at the middle ½ (1 + 2) + ⅛ · 2 (3 − 5) = 1.
        let cubic = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0];
        let cubic = track(Path::Scale, Between::Cubic, &[1.0, 3.0], &cubic);
        assert_eq!(cubic.at(2.0)[0], 1.0);
        assert_eq!((cubic.at(1.0)[0], cubic.at(3.0)[0]), (1.0, 2.0));
        // A quarter turn whose second key has the other sign: half of it is an eighth.
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let turn = track(Path::Rotation, Between::Linear, &[0.0, 1.0], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, -half, -half]);
        let q = DQuat::from_array(turn.at(0.5));
        assert!((q.dot(DQuat::from_rotation_z(std::f64::consts::FRAC_PI_4)).abs() - 1.0).abs() < 1e-7);
    }
}
