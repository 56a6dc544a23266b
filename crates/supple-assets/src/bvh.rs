//! BVH: skeletons and motion capture, read and written.
//!
//! A joint's channels are its translation in its parent, in place of its offset, and turns about its own axes, applied in the order in which
//! they stand: `parent_from_joint = T · R_1 · R_2 · R_3` \[degrees\].

use crate::{FileError, InputFile, Note, plain};
use glam::{DQuat, DVec3};
use std::fmt::Write;
use std::path::Path;
use supple::Pose;

/// A skeleton and its motion, in the file's unit and axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Bvh {
    /// A parent comes before its children.
    pub joints: Vec<Joint>,
    /// Seconds between frames.
    pub frame_time: f64,
    /// The channels of all joints in order, frame after frame.
    pub values: Vec<f64>,
}

/// A joint of the skeleton.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// Its name; names may repeat.
    pub name: String,
    /// `None`: a root.
    pub parent: Option<usize>,
    /// In its parent.
    pub offset: DVec3,
    /// What moves.
    pub channels: Vec<Channel>,
    /// Where the bone ends, if the file says so.
    pub ends: Vec<DVec3>,
}

/// One number of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Along X, Y or Z of the parent.
    Position(usize),
    /// About X, Y or Z \[degrees\].
    Rotation(usize),
}

/// What a frame may last \[s\]: shorter ones are speeds without end.
const FRAME_TIMES: std::ops::RangeInclusive<f64> = 1e-6..=1e3;
/// Most joints of a skeleton.
const MOST_JOINTS: usize = 10_000;

/// So many joints may share a channel.
const SHARED: usize = 8;

const WORDS: [(&str, Channel); 6] = [
    ("Xposition", Channel::Position(0)),
    ("Yposition", Channel::Position(1)),
    ("Zposition", Channel::Position(2)),
    ("Xrotation", Channel::Rotation(0)),
    ("Yrotation", Channel::Rotation(1)),
    ("Zrotation", Channel::Rotation(2)),
];

/// Reads a BVH file.
pub fn read(file: &InputFile) -> Result<Bvh, FileError> {
    parse(file.path(), file.text()?)
}

/// Reads BVH from a text that stands in a file of this name.
pub fn parse(path: &Path, text: &str) -> Result<Bvh, FileError> {
    let mut words = Words { path, rest: text, line: 1 };
    words.expect("HIERARCHY")?;
    let mut joints: Vec<Joint> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    loop {
        let word = words.next()?;
        match (word.to_ascii_uppercase().as_str(), open.last().copied()) {
            ("ROOT", None) | ("JOINT", Some(Open::Joint(_))) => {
                if joints.len() == MOST_JOINTS {
                    return Err(
                        words.wrong(format!("it has more than {MOST_JOINTS} joints"), "give a smaller skeleton")
                    );
                }
                let parent = open.last().map(|o| o.joint());
                let name = words.line_rest().trim().to_owned();
                words.expect("{")?;
                open.push(Open::Joint(joints.len()));
                joints.push(Joint { name, parent, offset: DVec3::ZERO, channels: Vec::new(), ends: Vec::new() });
            }
            ("END", Some(Open::Joint(joint))) => {
                words.expect("Site")?;
                words.expect("{")?;
                open.push(Open::End(joint));
            }
            ("OFFSET", Some(part)) => {
                let offset = DVec3::new(words.number()?, words.number()?, words.number()?);
                match part {
                    Open::Joint(joint) => joints[joint].offset = offset,
                    Open::End(joint) => joints[joint].ends.push(offset),
                }
            }
            ("CHANNELS", Some(Open::Joint(joint))) => {
                let count = words.number()?;
                for _ in 0..count.clamp(0.0, 7.0) as usize {
                    let word = words.next()?;
                    let channel = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, c)| *c);
                    let wrong = || words.wrong(format!("\"{word}\" is no channel"), "give Xposition … Zrotation");
                    let channel = channel.ok_or_else(wrong)?;
                    joints[joint].channels.push(channel);
                }
            }
            ("}", Some(_)) => {
                open.pop();
            }
            ("MOTION", None) => break,
            _ => {
                let shown: String = word.chars().take(40).collect();
                return Err(words.wrong(format!("\"{shown}\" does not belong here"), "correct the hierarchy"));
            }
        }
    }
    if joints.is_empty() {
        return Err(words.wrong("it has no joint", "give a skeleton"));
    }
    words.expect("Frames:")?;
    let frames = words.number()?;
    words.expect("Frame")?;
    words.expect("Time:")?;
    let frame_time = words.number()?;
    if !FRAME_TIMES.contains(&frame_time) {
        let remedy = format!("give seconds, from {} to {}", plain(*FRAME_TIMES.start()), plain(*FRAME_TIMES.end()));
        return Err(words.wrong(format!("the frame time is {} s", plain(frame_time)), remedy));
    }
    let width: usize = joints.iter().map(|joint| joint.channels.len()).sum();
    let mut values = Vec::new();
    while words.more() {
        values.push(words.number()?);
    }
    let held = values.len().checked_div(width).unwrap_or(0);
    if frames != held as f64 || values.len() != held * width || held == 0 {
        let what = format!("it tells of {frames} frames of {width} numbers and holds {} numbers", values.len());
        return Err(words.wrong(what, "export the motion again"));
    }
    // A joint without channels is in every frame all the same.
    if held.saturating_mul(joints.len()) > SHARED * values.len() + MOST_JOINTS {
        let what = format!("{held} frames of {} joints are told by {} numbers", joints.len(), values.len());
        return Err(FileError::new("file/size", path, what, "leave out joints that do not move"));
    }
    Ok(Bvh { joints, frame_time, values })
}

/// What an opened brace belongs to.
#[derive(Clone, Copy)]
enum Open {
    Joint(usize),
    End(usize),
}

impl Open {
    fn joint(self) -> usize {
        match self {
            Open::Joint(joint) | Open::End(joint) => joint,
        }
    }
}

/// The words of a text, with their lines.
struct Words<'a> {
    path: &'a Path,
    rest: &'a str,
    line: usize,
}

impl<'a> Words<'a> {
    fn wrong(&self, what: impl Into<String>, remedy: impl Into<String>) -> FileError {
        FileError::new("file/bvh", self.path, what, remedy).at(format!("line {}", self.line))
    }

    fn skip(&mut self) {
        let start = self.rest.trim_start();
        let skipped = &self.rest[..self.rest.len() - start.len()];
        self.line += skipped.bytes().filter(|b| *b == b'\n').count();
        self.rest = start;
    }

    fn more(&mut self) -> bool {
        self.skip();
        !self.rest.is_empty()
    }

    fn next(&mut self) -> Result<&'a str, FileError> {
        if !self.more() {
            return Err(self.wrong("it ends too early", "export the motion again"));
        }
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word)
    }

    fn line_rest(&mut self) -> &'a str {
        let end = self.rest.find(['\n', '{']).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        line
    }

    fn expect(&mut self, wanted: &str) -> Result<(), FileError> {
        let word = self.next()?;
        if word.eq_ignore_ascii_case(wanted) {
            return Ok(());
        }
        let shown: String = word.chars().take(40).collect();
        Err(self.wrong(format!("\"{shown}\" stands where \"{wanted}\" belongs"), "give a BVH file"))
    }

    fn number(&mut self) -> Result<f64, FileError> {
        let word = self.next()?;
        let number = word.parse::<f64>().ok().filter(|x| x.is_finite());
        let shown: String = word.chars().take(40).collect();
        number.ok_or_else(|| self.wrong(format!("\"{shown}\" is no finite number"), "correct the number"))
    }
}

impl Bvh {
    /// How many frames it has, at least one.
    pub fn frames(&self) -> usize {
        self.values.len() / self.width()
    }

    /// Numbers of a frame.
    fn width(&self) -> usize {
        self.joints.iter().map(|joint| joint.channels.len()).sum::<usize>().max(1)
    }

    /// Where the joints are with all turns at zero.
    pub fn rest(&self) -> Vec<Pose> {
        self.chain(|joint, _| Pose::at(joint.offset))
    }

    /// Where the joints are in a frame.
    pub fn frame(&self, frame: usize) -> Vec<Pose> {
        let values = &self.values[frame * self.width()..(frame + 1) * self.width()];
        self.chain(|joint, at| {
            let mut place = Pose::at(joint.offset);
            for (channel, value) in joint.channels.iter().zip(&values[at..]) {
                match channel {
                    Channel::Position(k) => place.translation[*k] = *value,
                    Channel::Rotation(k) => {
                        place.rotation *= DQuat::from_axis_angle(DVec3::AXES[*k], value.to_radians())
                    }
                }
            }
            place
        })
    }

    /// Whether the motion jumps from its first frame: a joint turns by more than half a radian to the second, and none so far to the third.
    pub fn begins_at_rest(&self) -> bool {
        if self.frames() < 3 {
            return false;
        }
        let [a, b, c] = [0, 1, 2].map(|f| self.frame(f));
        let turned = |from: &[Pose], to: &[Pose]| {
            from.iter().zip(to).map(|(p, q)| p.rotation.angle_between(q.rotation)).fold(0f64, f64::max)
        };
        turned(&a, &b) > 0.5 && turned(&b, &c) < 0.25
    }

    /// The farthest that a joint turns against its parent from one frame to the next, from frame `first` on: angle \[rad\], joint, frame. Beyond
    /// 60 rad/s it is no motion but a fault of the recording, such as markers that were taken for each other.
    pub fn largest_jump(&self, first: usize) -> (f64, usize, usize) {
        let local = |poses: &[Pose], j: usize| match self.joints[j].parent {
            Some(parent) => poses[parent].rotation.conjugate() * poses[j].rotation,
            None => poses[j].rotation,
        };
        let mut largest = (0.0, 0, first);
        let mut last = self.frame(first.min(self.frames() - 1));
        for f in first + 1..self.frames() {
            let frame = self.frame(f);
            for j in 0..self.joints.len() {
                let angle = local(&last, j).angle_between(local(&frame, j));
                if angle > largest.0 {
                    largest = (angle, j, f);
                }
            }
            last = frame;
        }
        largest
    }

    /// What to tell about a recording that jumps.
    pub(crate) fn jump_note(&self, path: &Path, first: usize) -> Option<Note> {
        let (angle, joint, frame) = self.largest_jump(first);
        let text = format!(
            "joint \"{}\" turns by {angle:.1} rad from one frame to the next (frame {frame}): the recording is faulty there",
            self.joints[joint].name
        );
        (angle > (60.0 * self.frame_time).clamp(0.5, 2.5)).then(|| Note {
            code: "import/jump",
            part: path.to_string_lossy().into_owned(),
            text,
        })
    }

    /// Poses in the world from those in the parents; `local` is told where a joint's numbers begin in a frame.
    fn chain(&self, local: impl Fn(&Joint, usize) -> Pose) -> Vec<Pose> {
        let mut out: Vec<Pose> = Vec::with_capacity(self.joints.len());
        let mut at = 0;
        for joint in &self.joints {
            let place = local(joint, at);
            at += joint.channels.len();
            out.push(joint.parent.map_or(place, |parent| out[parent].then(place)));
        }
        out
    }

    /// The text of a BVH file.
    pub fn write(&self) -> String {
        let mut out = String::from("HIERARCHY\n");
        for root in (0..self.joints.len()).filter(|&j| self.joints[j].parent.is_none()) {
            self.write_joint(&mut out, root);
        }
        let _ = write!(out, "MOTION\nFrames: {}\nFrame Time: {}\n", self.frames(), self.frame_time);
        for frame in self.values.chunks_exact(self.width()) {
            let numbers: Vec<String> = frame.iter().map(f64::to_string).collect();
            let _ = writeln!(out, "{}", numbers.join(" "));
        }
        out
    }

    /// A root with all that hangs on it. The joints stand in the order of a walk in depth, so each ends where the depth falls.
    fn write_joint(&self, out: &mut String, root: usize) {
        let mut stack = vec![(root, 0, Part::Open)];
        while let Some((j, depth, step)) = stack.pop() {
            let pad = "\t".repeat(depth);
            let joint = &self.joints[j];
            if step == Part::Close {
                let _ = writeln!(out, "{pad}}}");
                continue;
            }
            let vector = |v: DVec3| format!("{} {} {}", v.x, v.y, v.z);
            let word = if joint.parent.is_none() { "ROOT" } else { "JOINT" };
            let _ = write!(out, "{pad}{word} {}\n{pad}{{\n{pad}\tOFFSET {}\n", joint.name, vector(joint.offset));
            let name = |channel: &Channel| WORDS.iter().find(|(_, c)| c == channel).map_or("", |(name, _)| name);
            let names: Vec<&str> = joint.channels.iter().map(name).collect();
            let _ = writeln!(out, "{pad}\tCHANNELS {} {}", names.len(), names.join(" "));
            for end in &joint.ends {
                let _ = write!(out, "{pad}\tEnd Site\n{pad}\t{{\n{pad}\t\tOFFSET {}\n{pad}\t}}\n", vector(*end));
            }
            stack.push((j, depth, Part::Close));
            let children = (0..self.joints.len()).rev().filter(|&c| self.joints[c].parent == Some(j));
            stack.extend(children.map(|c| (c, depth + 1, Part::Open)));
        }
    }
}

/// Whether the head or the end of a joint is to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Open,
    Close,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HIERARCHY\r\nROOT Hips\r\n{\n OFFSET 0 0 0\n CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation\n \
        JOINT Left Leg\n {\n OFFSET 1 -2 0\n CHANNELS 3 Zrotation Yrotation Xrotation\n End Site\n {\n OFFSET 0 -3 0\n }\n }\n}\n\
        MOTION\nFrames: 2\nFrame Time: .5\n0 1 0 0 0 0 0 0 0\n1 2 3 90 0 0 0 0 90\n";

    #[test]
    fn a_leg_turns_with_its_hips() {
        let bvh = parse(Path::new("a.bvh"), TEXT).unwrap();
        assert_eq!((bvh.frames(), bvh.joints[1].name.as_str()), (2, "Left Leg"));
        let poses = bvh.frame(1);
        // hips at (1, 2, 3), turned by 90° about Z: (1, −2, 0) → (2, 1, 0)
        assert!((poses[1].translation - DVec3::new(3.0, 3.0, 3.0)).length() < 1e-12);
        // then 90° about its own X, which is Y: its end (0, −3, 0) → (0, 0, −3) → (0, 0, −3)
        let end = poses[1].transform_point(bvh.joints[1].ends[0]);
        assert!((end - DVec3::new(3.0, 3.0, 0.0)).length() < 1e-12, "{end}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let bvh = parse(Path::new("a.bvh"), TEXT).unwrap();
        assert_eq!(parse(Path::new("a.bvh"), &bvh.write()).unwrap(), bvh);
    }

    #[test]
    fn faults_have_their_line() {
        let wrong = |from: &str, to: &str| parse(Path::new("a.bvh"), &TEXT.replacen(from, to, 1)).unwrap_err();
        assert_eq!(wrong("Frames: 2", "Frames: 3").code, "file/bvh");
        assert_eq!(wrong("OFFSET 1 -2 0", "OFFSET 1 x 0").place.as_deref(), Some("line 8"));
        assert!(wrong("Xrotation", "Wrotation").what.contains("Wrotation"));
        assert!(wrong("Time: .5", "Time: -1").what.contains("-1"));
        assert_eq!(parse(Path::new("a.bvh"), "").unwrap_err().code, "file/bvh");
    }
}
