//! Files damaged at random: none may panic, hang or take much memory; each is read, or refused with a reason.

use crate::allocator;
use std::path::Path;
use std::time::{Duration, Instant};
use supple_assets::robot::{Base, build};
use supple_assets::{FileError, bvh, meshes, mjcf, urdf};

/// A format: its name, a good file, and what is done with a damaged one.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    seed: &'static str,
    read: fn(&[u8]) -> Result<(), FileError>,
}

pub(crate) const FORMATS: [Format; 5] = [
    Format { name: "urdf", seed: URDF, read: read_urdf },
    Format { name: "mjcf", seed: MJCF, read: read_mjcf },
    Format { name: "bvh", seed: BVH, read: read_bvh },
    Format { name: "stl", seed: STL, read: |bytes| meshes::stl(Path::new("a.stl"), bytes).map(drop) },
    Format { name: "obj", seed: OBJ, read: |bytes| meshes::obj(Path::new("a.obj"), bytes).map(drop) },
];

fn read_urdf(bytes: &[u8]) -> Result<(), FileError> {
    let path = Path::new("a.urdf");
    let robot = urdf::parse(path, &String::from_utf8_lossy(bytes))?;
    let built = build(path, &robot, Base::Floating)?;
    assert!(built.model.start().is_finite());
    Ok(())
}

fn read_mjcf(bytes: &[u8]) -> Result<(), FileError> {
    let path = Path::new("a.xml");
    let robot = mjcf::parse(path, &String::from_utf8_lossy(bytes))?;
    let built = build(path, &robot, Base::Fixed)?;
    assert!(built.model.start().is_finite());
    for pose in &built.poses {
        built.place(&pose.positions);
    }
    Ok(())
}

fn read_bvh(bytes: &[u8]) -> Result<(), FileError> {
    let recording = bvh::parse(Path::new("a.bvh"), &String::from_utf8_lossy(bytes))?;
    for f in 0..recording.frames() {
        recording.frame(f);
    }
    assert!(recording.write().len() < 100 * bytes.len() + 1000);
    Ok(())
}

/// What is put in the place of words.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-308",
    "nan",
    "inf",
    "99999999999999999999",
    "1e9",
    "",
    "<",
    ">",
    "\"",
    "/>",
    "{",
    "}",
    "</body>",
    "<body>",
    "world",
    "name=\"a\"",
    "1 2 3",
    "&amp;",
    "\u{0}",
    "é",
];

/// What is put in the place of numbers.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "2",
    "1e308",
    "-1e308",
    "1e150",
    "1e-308",
    "1e-150",
    "-0.5",
    "1e9",
    "1e-9",
    "90",
    "180",
    "1000000",
    "3.14159265358979",
];

/// What reading damaged files came to.
pub(crate) struct Read {
    /// How many were read; the others were refused.
    pub(crate) taken: u64,
    /// The longest that one took.
    pub(crate) slowest: Duration,
    /// The most memory that one took \[bytes\].
    pub(crate) memory: usize,
}

/// A file of a few kilobytes is read in milliseconds and in some hundred kilobytes: these are a hang and a flood on any machine.
const HANG: Duration = Duration::from_secs(5);
const FLOOD: usize = 64 << 20;

/// Damages a good file `count` times and reads each.
pub(crate) fn run(format: &Format, count: u64, seed: u64) -> Read {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below.max(1)
    };
    (format.read)(format.seed.as_bytes()).unwrap_or_else(|e| panic!("the good file itself: {e}"));
    let mut read = Read { taken: 0, slowest: Duration::ZERO, memory: 0 };
    for k in 0..count {
        let mut bytes = format.seed.as_bytes().to_vec();
        for _ in 0..1 + next(4) {
            let at = next(bytes.len());
            // Every other file stays well formed, and has wrong numbers.
            if k % 2 == 0 {
                let is_number = |b: &u8| b.is_ascii_digit() || b".-e".contains(b);
                if let Some(first) = (at..bytes.len()).find(|&k| bytes[k].is_ascii_digit()) {
                    let start = (0..first).rev().find(|&k| !is_number(&bytes[k])).map_or(0, |k| k + 1);
                    let end = (first..bytes.len()).find(|&k| !is_number(&bytes[k])).unwrap_or(bytes.len());
                    bytes.splice(start..end, NUMBERS[next(NUMBERS.len())].bytes());
                }
                continue;
            }
            let to = (at + 1 + next(40)).min(bytes.len());
            match next(6) {
                0 => bytes[at] = next(256) as u8,
                1 => drop(bytes.drain(at..to)),
                2 => {
                    let copy = bytes[at..to].to_vec();
                    let there = next(bytes.len());
                    bytes.splice(there..there, copy);
                }
                3 => bytes.truncate(at + 1),
                _ => {
                    // a number or a name becomes something else
                    let is_word = |b: &u8| b.is_ascii_alphanumeric() || b".-_".contains(b);
                    let start = (0..at).rev().find(|&k| !is_word(&bytes[k])).map_or(0, |k| k + 1);
                    let end = (at..bytes.len()).find(|&k| !is_word(&bytes[k])).unwrap_or(bytes.len()).max(start);
                    bytes.splice(start..end, WORDS[next(WORDS.len())].bytes());
                }
            }
            if bytes.is_empty() {
                bytes.push(b'<');
            }
        }
        let start = Instant::now();
        allocator::reset();
        match (format.read)(&bytes) {
            Ok(()) => read.taken += 1,
            Err(e) => assert!(e.code.starts_with("file/") && !e.what.is_empty() && !e.remedy.is_empty(), "{e}"),
        }
        let (time, memory) = (start.elapsed(), allocator::peak());
        assert!(time < HANG && memory < FLOOD, "{} {k}: {time:?}, {memory} bytes", format.name);
        (read.slowest, read.memory) = (read.slowest.max(time), read.memory.max(memory));
    }
    read
}

const URDF: &str = r#"<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><inertial><origin xyz="0 0 .1" rpy="0 .1 0"/><mass value="2"/><inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial>
    <collision><geometry><box size=".2 .2 .1"/></geometry></collision></link>
  <link name="upper"><inertial><mass value="1"/><inertia ixx=".02" ixy="0" ixz=".001" iyy=".02" iyz="0" izz=".01"/></inertial>
    <visual><origin xyz="0 0 .2"/><geometry><cylinder length=".4" radius=".03"/></geometry></visual></link>
  <link name="tool"><collision><geometry><sphere radius=".05"/></geometry></collision></link>
  <link name="slide"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 .1" rpy="0 0 .3"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping=".1" friction=".2"/></joint>
  <joint name="mount" type="fixed"><parent link="upper"/><child link="tool"/><origin xyz="0 0 .4"/></joint>
  <joint name="rail" type="prismatic"><parent link="upper"/><child link="slide"/><axis xyz="1 0 0"/><limit lower="0" upper=".1" effort="5"/><mimic joint="shoulder" multiplier=".05" offset=".01"/></joint>
</robot>
"#;

const MJCF: &str = r#"<mujoco model="arm">
  <compiler angle="degree" eulerseq="xyz" settotalmass="4"/>
  <option gravity="0 0 -9.81"><flag contact="enable"/></option>
  <default><joint damping=".1" limited="auto"/><geom density="900"/><default class="thin"><geom type="capsule" size=".02"/></default></default>
  <asset><mesh name="m" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 .1"/>
    <body name="torso" pos="0 0 1" euler="0 10 0" childclass="thin"><freejoint name="root"/><geom fromto="0 0 0 0 0 .3"/>
      <body name="arm" pos="0 0 .3"><joint name="a" axis="0 1 0" range="-90 45" stiffness="2" springref="5"/><joint name="b" axis="1 0 0" pos="0 0 .01"/>
        <geom fromto="0 0 0 .3 0 0"/><site name="tip" pos=".3 0 0"/>
        <frame pos=".3 0 0"><body name="hand"><joint name="c" type="ball" range="0 60"/><geom type="ellipsoid" size=".03 .05 .02"/><geom type="mesh" mesh="m"/></body></frame></body></body>
    <body name="post" pos="1 0 0"><geom type="box" size=".1 .1 .5"/><inertial mass="3" pos="0 0 0" diaginertia=".1 .1 .1"/></body>
    <body name="cart" pos="0 2 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint name="d" axis="0 1 0"/><geom type="cylinder" size=".1 .2"/></body>
  </worldbody>
  <contact><exclude body1="torso" body2="arm"/></contact>
  <equality><connect body1="hand" body2="post" anchor="0 0 0"/><weld body1="cart" body2="post" active="false"/>
    <joint joint1="b" joint2="a" polycoef=".1 .5 0 0 0"/></equality>
  <tendon><spatial name="t" stiffness="10"><site site="tip"/><site site="tip"/></spatial>
    <fixed name="f" stiffness="3"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>
  <actuator><motor joint="a" gear="10" ctrlrange="-1 1"/><position joint="b" kp="20" kv="1"/><general joint="d" gainprm="5" biastype="affine" biasprm="0 -5 -1"/></actuator>
  <keyframe><key name="k" qpos="0 0 1 1 0 0 0 .1 .2 1 0 0 0 0 0 0"/></keyframe>
</mujoco>
"#;

const BVH: &str = "HIERARCHY\nROOT Hips\n{\n OFFSET 0 0 0\n CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation\n JOINT Leg\n {\n  OFFSET 1 -2 0\n  \
    CHANNELS 3 Zrotation Yrotation Xrotation\n  End Site\n  {\n   OFFSET 0 -3 0\n  }\n }\n}\nMOTION\nFrames: 3\nFrame Time: .0083\n0 1 0 0 0 0 0 0 0\n\
    1 2 3 90 0 0 0 0 90\n1 2 3 80 0 0 0 10 90\n";

const STL: &str = "solid a\n facet normal 0 0 1\n  outer loop\n   vertex 0 0 0\n   vertex 1 0 0\n   vertex 0 1 0\n  endloop\n endfacet\nendsolid a\n";

const OBJ: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvn 0 0 1\nf 1/1/1 2//1 3\nf 1 2 4\nf 1 3 -1\nf 2 3 4\n";
