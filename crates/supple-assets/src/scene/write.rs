//! A rig as a scene file that can be edited.

use crate::{Character, JointFrom, SpringFrom, Turn};
use std::fmt::Write;
use supple::{Range, SwingEllipse};

impl Character {
    /// The rig as a scene file; `file` is the path of the character from the folder of the scene file, `track` the clip that it follows.
    pub fn scene_file(&self, file: &str, track: Option<&str>) -> String {
        let mut out = String::new();
        let _ = self.write_scene(file, track, &mut out); // writing to a String cannot fail
        out
    }

    fn write_scene(&self, file: &str, track: Option<&str>, out: &mut String) -> std::fmt::Result {
        let degrees = |x: f64| round(x.to_degrees());
        writeln!(out, "#:schema scene.schema.json")?;
        writeln!(
            out,
            "# The physical rig of {file}. Change values, take out what should stay automatic; names may be patterns (\"*.l\")."
        )?;
        writeln!(out, "# Masses in kg, angles in degrees, times in seconds.\n")?;
        writeln!(out, "[character]\nfile = {}", quoted(file))?;
        let options = self.options();
        for (name, value) in [("mass", options.mass), ("scale", options.scale), ("height", options.height)] {
            if let Some(value) = value {
                writeln!(out, "{name} = {}", number(value))?;
            }
        }
        let clips: Vec<&str> = self.rig.clips.iter().map(|c| c.name.as_str()).collect();
        if let Some(track) = track {
            writeln!(out, "track = {}", quoted(track))?;
        } else if !clips.is_empty() {
            let names = clips.iter().map(|c| c.replace('\n', " ")).collect::<Vec<_>>().join(", ");
            writeln!(out, "# track = …  one of {names}")?;
        }
        for bone in &self.rig.bones {
            let from = match bone.joint_from {
                JointFrom::Nothing => "a root",
                JointFrom::Name => "limits by its name",
                JointFrom::NameAndClips => "limits by its name, widened to the clips",
                JointFrom::Clips => "limits from the clips",
                JointFrom::Shape => "limits by its form",
                JointFrom::File => "limits of the file",
                JointFrom::Scene => "limits as given",
            };
            writeln!(out, "\n[bones.{}]  # {:?}; {from}", quoted(&bone.name), bone.class)?;
            writeln!(out, "mass = {}", number(bone.mass))?;
            for (name, factor) in
                self.shaped.get(&bone.name).into_iter().flat_map(|f| ["width", "length"].into_iter().zip(f))
            {
                if *factor != 1.0 {
                    writeln!(out, "{name} = {}", number(*factor))?;
                }
            }
            if !bone.is_joined() {
                continue;
            }
            // What the file's own spring does is told, not asked for: asking makes another spring.
            // A limb that was made heavier sags more than its spring was made for: asking would make another, too.
            let told = match bone.spring_from {
                SpringFrom::File => true,
                SpringFrom::Asked => self.rig.is_reweighed(),
                SpringFrom::Scene => false,
            };
            let asked = if told { "# " } else { "" };
            writeln!(out, "{asked}sag = {}", number(degrees(bone.sag)))?;
            writeln!(out, "{asked}settle = {}", number(bone.settle))?;
            writeln!(out, "strength = {}", number(bone.strength))?;
            match bone.joint {
                Turn::Hinge { axis, range } => {
                    let [x, y, z] = axis.to_array().map(|x| number(round(x)));
                    writeln!(out, "joint = \"hinge\"\naxis = [{x}, {y}, {z}]")?;
                    writeln!(out, "range = [{}, {}]", number(degrees(range.min)), number(degrees(range.max)))?;
                }
                Turn::Given(joint) => {
                    let (limits, rest) = (&joint.limits, joint.angle_at_rest());
                    let pair = |r: Range, rest: f64| {
                        format!("[{}, {}]", number(degrees(r.min - rest)), number(degrees(r.max - rest)))
                    };
                    let finite = |r: &Range| r.min.is_finite() && r.max.is_finite();
                    match limits.angle.filter(finite) {
                        Some(range) if bone.axis().is_some() => writeln!(out, "range = {}", pair(range, rest))?,
                        Some(twist) => writeln!(out, "twist = {}", pair(twist, 0.0))?,
                        None => {}
                    }
                    if let Some(SwingEllipse { about_y, about_z }) = limits.swing {
                        writeln!(out, "swing = [{}, {}]", number(degrees(about_y)), number(degrees(about_z)))?;
                    }
                }
                Turn::Ball { swing, twist, .. } => {
                    writeln!(out, "joint = \"ball\"")?;
                    let (side, bend) = (degrees(swing.about_y), degrees(swing.about_z));
                    writeln!(out, "swing = [{}, {}]", number(side.min(180.0)), number(bend.min(180.0)))?;
                    if twist.min.is_finite() && twist.max.is_finite() {
                        writeln!(out, "twist = [{}, {}]", number(degrees(twist.min)), number(degrees(twist.max)))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// To five digits after the point: what a person edits.
fn round(x: f64) -> f64 {
    (x * 1e5).round() / 1e5
}

/// A number that TOML reads as one with a fraction.
fn number(x: f64) -> String {
    let text = format!("{x}");
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
