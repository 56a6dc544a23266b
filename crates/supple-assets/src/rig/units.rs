//! The unit of length of a file: glTF is in metres, and many files are not.

use super::{Class, Kind};
use crate::Note;

/// Heights of figures on two legs and of animals on four \[m\]: a power of ten each, so that every file has one unit that brings it there, and the same character in
/// any unit moves the same.
const BIPED: (f64, f64) = (0.4, 4.0);
const QUADRUPED: (f64, f64) = (0.25, 2.5);
/// The largest extent of a hand by itself \[m\].
const HAND: (f64, f64) = (0.05, 0.5);
/// The largest extent of all else: a snake, a bird, a tentacle is taken to be as large as an animal. What is a whale, or a finger, must be told.
const OTHER: (f64, f64) = QUADRUPED;
/// Units of programs and factors of exporters; the first that fits.
const UNITS: [(f64, &str); 8] = [
    (0.01, "centimetres"),
    (100.0, "hundreds of metres"),
    (0.1, "tenths of metres"),
    (10.0, "tens of metres"),
    (0.001, "millimetres"),
    (1000.0, "kilometres"),
    (1e-4, "tenths of millimetres"),
    (1e4, "tens of kilometres"),
];

/// Metres in a unit of length of a file in which a body of this kind, whose bones are these, has this height and largest extent, and a note where that is not one.
pub(crate) fn guess(kind: Kind, classes: &[Class], height: f64, size: f64) -> (f64, Option<Note>) {
    let of_hand = |c: &&Class| matches!(c, Class::Hand | Class::Metacarpal | Class::FingerBase | Class::Finger);
    let is_hand = classes.len() > 2 && 4 * classes.iter().filter(of_hand).count() > 3 * classes.len();
    // A bird is no person of 3 m.
    let armless = !classes.is_empty() && !classes.contains(&Class::Forearm);
    let (measured, (low, high)) = match kind {
        Kind::Biped if armless => (size, OTHER),
        Kind::Biped => (height, BIPED),
        Kind::Quadruped => (height, QUADRUPED),
        Kind::Other if is_hand => (size, HAND),
        Kind::Other => (size, OTHER),
    };
    // The ends of a range hold what is on them to rounding of a file.
    let fits = |scale: f64| (low * (1.0 - 1e-6)..high * (1.0 - 1e-6)).contains(&(measured * scale));
    if fits(1.0) || !(measured > 0.0 && measured.is_finite()) {
        return (1.0, None);
    }
    let Some((scale, unit)) = UNITS.into_iter().find(|(scale, _)| fits(*scale)) else { return (1.0, None) };
    let across = if kind == Kind::Other || (kind == Kind::Biped && armless) { "large" } else { "high" };
    let text = format!(
        "its lengths are not metres: {measured:.4} units {across}, it is read in {unit}, {:.3} m",
        measured * scale
    );
    (scale, Some(Note { code: "import/scale", part: "scene".into(), text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_figure_in_any_unit_has_one_height() {
        for height in [0.4, 0.55, 1.0, 1.7, 3.99] {
            for unit in [1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0] {
                let (scale, note) = guess(Kind::Biped, &[], height * unit, 2.0 * height * unit);
                assert!((height * unit * scale - height).abs() < 1e-9 * height, "{height} {unit} {scale}");
                assert_eq!(note.is_some(), unit != 1.0);
            }
        }
        // A bird of 0.3 m is one; with arms it is a figure in tens of metres.
        assert_eq!(guess(Kind::Biped, &[Class::Thigh, Class::Calf], 0.3, 1.2).0, 1.0);
        assert_eq!(guess(Kind::Biped, &[Class::Thigh, Class::Forearm], 0.3, 0.3).0, 10.0);
        // A hand of 19 m is one in centimetres, and what is not known as large as an animal, in any unit.
        let hand = [Class::Hand, Class::FingerBase, Class::Finger];
        assert_eq!(guess(Kind::Other, &hand, 5.0, 19.0).0, 0.01);
        for size in [0.25, 0.92, 2.49] {
            for unit in [1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0] {
                let (scale, _) = guess(Kind::Other, &[], 0.3 * size * unit, size * unit);
                assert!((size * unit * scale - size).abs() < 1e-9 * size, "{size} {unit} {scale}");
            }
        }
        assert_eq!(guess(Kind::Biped, &[], 0.0, 0.0).0, 1.0);
    }
}
