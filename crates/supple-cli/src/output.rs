//! Writers: JSON documents, trajectories as CSV, charts as SVG.

use crate::error::Error;
use crate::terminal::{Harmless, Terminal, steers};
use crate::whole::{WholeFile, check_writable, place};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use supple::{Model, State};

/// Files to be written, each with the ending that tells its format.
#[derive(Debug)]
pub(crate) struct Outputs {
    files: Vec<(PathBuf, &'static str)>,
}

impl Outputs {
    /// Checks before any work is done that each file has one of these endings, is named once and can be written.
    pub(crate) fn check(paths: &[PathBuf], endings: &[&'static str]) -> Result<Outputs, Error> {
        let (mut files, mut places) = (Vec::<(PathBuf, &'static str)>::new(), Vec::new());
        for path in paths {
            let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
            let Some(&ending) = endings.iter().find(|known| **known == ending) else {
                let list = endings.iter().map(|e| format!(".{e}")).collect::<Vec<_>>().join(" or ");
                return Err(Error::wrong(
                    "cli/output",
                    format!("cannot tell what to write into {}", path.display()),
                    format!("give a file that ends in {list}"),
                ));
            };
            check_writable(path).map_err(|e| Error::output(path, &e))?;
            let place = place(path).map_err(|e| Error::output(path, &e))?;
            if let Some(twice) = places.iter().position(|earlier| *earlier == place) {
                let earlier = &files[twice].0;
                let same = if earlier == path { String::new() } else { format!(", as {} before", earlier.display()) };
                let what = format!("{} is given twice{same}", path.display());
                return Err(Error::wrong("cli/output", what, "give it once"));
            }
            places.push(place);
            files.push((path.clone(), ending));
        }
        Ok(Outputs { files })
    }

    /// The files with this ending.
    pub(crate) fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a Path> {
        self.files.iter().filter(move |(_, e)| *e == ending).map(|(path, _)| path.as_path())
    }

    /// Notes that every file was written.
    pub(crate) fn tell(&self, terminal: &Terminal) {
        for (path, _) in &self.files {
            terminal.note(format_args!("wrote {}", path.display()));
        }
    }
}

/// Writes a file, whole or not at all.
pub(crate) fn write(path: &Path, write: impl FnOnce(&mut WholeFile) -> io::Result<()>) -> Result<(), Error> {
    let all = || {
        let mut file = WholeFile::create(path)?;
        write(&mut file)?;
        file.finish()
    };
    all().map_err(|e| Error::output(path, &e))
}

/// Writes text into a file.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    write(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a JSON document into a file.
pub(crate) fn write_json(path: &Path, document: &impl Serialize) -> Result<(), Error> {
    write(path, |out| json(out, document))
}

/// Prints a JSON document, the only thing on standard output.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Error> {
    print(|out| json(out, document))
}

fn json(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    // Within the words of JSON the same can be said harmlessly.
    let mut text = String::new();
    for sign in serde_json::to_string_pretty(document)?.chars() {
        match steers(sign) {
            true => text.push_str(&format!("\\u{:04x}", sign as u32)),
            false => text.push(sign),
        }
    }
    writeln!(out, "{text}")
}

/// Prints to standard output through a buffer.
pub(crate) fn print(
    write: impl FnOnce(&mut Harmless<BufWriter<io::StdoutLock<'_>>>) -> io::Result<()>,
) -> Result<(), Error> {
    let mut out = Harmless(BufWriter::new(io::stdout().lock()));
    write(&mut out).and_then(|()| out.flush()).map_err(Error::stdout)
}

/// A trajectory: one row per body and frame.
#[derive(Debug)]
pub(crate) struct Trajectory {
    path: PathBuf,
    out: WholeFile,
}

impl Trajectory {
    /// Starts the file.
    pub(crate) fn create(path: &Path) -> Result<Trajectory, Error> {
        let out = WholeFile::create(path).map_err(|e| Error::output(path, &e))?;
        let mut trajectory = Trajectory { path: path.to_owned(), out };
        let head = writeln!(trajectory.out, "time,body,x,y,z,qw,qx,qy,qz,vx,vy,vz,wx,wy,wz");
        trajectory.told(head)?;
        Ok(trajectory)
    }

    /// Adds the state: every number with as many digits as give the same bits back.
    pub(crate) fn frame(&mut self, model: &Model, state: &State) -> Result<(), Error> {
        let frame = write_frame(&mut self.out, model, state);
        self.told(frame)
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.out.finish().map_err(|e| Error::output(&self.path, &e))
    }

    fn told(&self, result: io::Result<()>) -> Result<(), Error> {
        result.map_err(|e| Error::output(&self.path, &e))
    }
}

fn write_frame(out: &mut impl Write, model: &Model, state: &State) -> io::Result<()> {
    for (body, s) in model.bodies().iter().zip(&state.bodies) {
        let (q, v) = (s.orientation, s.velocity);
        write!(out, "{:?},{}", state.time, csv_field(&body.name))?;
        let numbers = s.position.to_array().into_iter().chain([q.w, q.x, q.y, q.z]);
        for x in numbers.chain(v.linear.to_array()).chain(v.angular.to_array()) {
            write!(out, ",{x:?}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A field of a CSV row, in quotes where its letters need them (RFC 4180).
pub(crate) fn csv_field(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// A curve or a set of points of a chart.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) colour: RGBColor,
    pub(crate) kind: SeriesKind,
    /// Width of its strokes; a heavy line shows behind a light one that covers it.
    pub(crate) weight: u32,
    pub(crate) points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesKind {
    /// A line through dots.
    Line,
    /// Crosses.
    Crosses,
}

/// The words of a chart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captions<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
}

/// A chart with logarithmic axes, as SVG. Points that are not above zero are left out.
pub(crate) fn log_log_chart(captions: Captions<'_>, series: &[Series]) -> Result<String, Error> {
    let (x, y) = (decades(drawable(series).map(|p| p.0)), decades(drawable(series).map(|p| p.1)));
    chart(captions, series, (x.0..x.1).log_scale(), y)
}

/// A chart over time, the other axis logarithmic, as SVG. Points that are not above zero are left out.
pub(crate) fn time_chart(captions: Captions<'_>, series: &[Series]) -> Result<String, Error> {
    let last = drawable(series).map(|p| p.0).fold(0.0, f64::max);
    let y = decades(drawable(series).map(|p| p.1));
    chart(captions, series, 0.0..if last > 0.0 { last } else { 1.0 }, y)
}

/// The points that have a place on logarithmic axes.
fn drawable(series: &[Series]) -> impl Iterator<Item = &(f64, f64)> {
    series.iter().flat_map(|s| s.points.iter()).filter(|p| is_drawable(p))
}

fn is_drawable(&(x, y): &(f64, f64)) -> bool {
    x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite()
}

fn chart<X>(captions: Captions<'_>, series: &[Series], x: X, y: (f64, f64)) -> Result<String, Error>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    draw(&mut svg, captions, series, x, y)
        .map_err(|e| Error::failed("cli/output", format!("cannot draw the chart: {e}")))?;
    Ok(svg)
}

fn draw<X>(
    svg: &mut String,
    captions: Captions<'_>,
    series: &[Series],
    x: X,
    y: (f64, f64),
) -> Result<(), Box<dyn std::error::Error>>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let root = SVGBackend::with_string(svg, (800, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(captions.title, ("sans-serif", 25))
        .margin(16)
        .margin_right(48)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(x, (y.0..y.1).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(captions.x)
        .y_desc(captions.y)
        .x_label_formatter(&|x| crate::table::given(*x))
        .y_label_formatter(&|y| crate::table::given(*y))
        .label_style(("sans-serif", 17))
        .axis_desc_style(("sans-serif", 19))
        .bold_line_style(BLACK.mix(0.15))
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for s in series {
        let points: Vec<(f64, f64)> = s.points.iter().filter(|p| is_drawable(p)).copied().collect();
        let (colour, weight) = (s.colour, s.weight);
        match s.kind {
            SeriesKind::Line => {
                chart
                    .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(weight)))?
                    .label(&s.label)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(weight)));
                chart.draw_series(points.iter().map(|&p| Circle::new(p, 2 + weight as i32, colour.filled())))?;
            }
            SeriesKind::Crosses => {
                chart
                    .draw_series(points.iter().map(|&p| Cross::new(p, 6, colour.stroke_width(weight))))?
                    .label(&s.label)
                    .legend(move |(x, y)| Cross::new((x + 10, y), 5, colour.stroke_width(weight)));
            }
        }
    }
    chart
        .configure_series_labels()
        .position(emptiest_corner(series))
        .margin(12)
        .label_font(("sans-serif", 18))
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}

/// The corner of a chart with the fewest points, the upper left before the others: where its key covers least.
fn emptiest_corner(series: &[Series]) -> SeriesLabelPosition {
    let drawable = |&(x, y): &(f64, f64)| x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite();
    let points: Vec<(f64, f64)> = series.iter().flat_map(|s| s.points.iter().copied()).filter(drawable).collect();
    let (x, y) = (decades(points.iter().map(|p| p.0)), decades(points.iter().map(|p| p.1)));
    let share = |v: f64, (low, high): (f64, f64)| (v / low).ln() / (high / low).ln();
    // A key of ten lines takes about two fifths of the width and half of the height.
    let crowd = |left: bool, lower: bool| {
        let inside = |&&(px, py): &&(f64, f64)| {
            let (u, v) = (share(px, x), share(py, y));
            (if left { u < 0.45 } else { u > 0.55 }) && (if lower { v < 0.55 } else { v > 0.45 })
        };
        points.iter().filter(inside).count()
    };
    let corners = [
        (crowd(true, false), SeriesLabelPosition::UpperLeft),
        (crowd(false, false), SeriesLabelPosition::UpperRight),
        (crowd(true, true), SeriesLabelPosition::LowerLeft),
        (crowd(false, true), SeriesLabelPosition::LowerRight),
    ];
    let least = corners.iter().map(|(count, _)| *count).min().unwrap_or(0);
    corners.into_iter().find(|(count, _)| *count == least).map_or(SeriesLabelPosition::UpperLeft, |(_, corner)| corner)
}

/// The powers of ten around the values.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (min, max) = values.fold((f64::INFINITY, 0.0f64), |(min, max), v| (min.min(v), max.max(v)));
    if max == 0.0 {
        return (1.0, 10.0);
    }
    let low = min.log10().floor();
    (10f64.powf(low), 10f64.powf(max.log10().ceil().max(low + 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_needed() {
        assert_eq!(csv_field("left arm"), "left arm");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn axes_end_at_powers_of_ten() {
        assert_eq!(decades([12.0, 285.0].into_iter()), (10.0, 1000.0));
        assert_eq!(decades([100.0].into_iter()), (100.0, 1000.0));
        assert_eq!(decades([].into_iter()), (1.0, 10.0));
    }

    #[test]
    fn the_key_stands_where_fewest_points_are() {
        let falling = vec![(1.0, 1.0), (10.0, 0.1), (100.0, 0.01), (50.0, 0.9), (1.5, 0.5)];
        let series =
            |points| [Series { label: String::new(), colour: BLUE, kind: SeriesKind::Line, weight: 1, points }];
        assert!(matches!(emptiest_corner(&series(falling)), SeriesLabelPosition::LowerLeft));
        let rising = vec![(1.0, 0.01), (10.0, 0.1), (100.0, 1.0)];
        assert!(matches!(emptiest_corner(&series(rising)), SeriesLabelPosition::UpperLeft));
        assert!(matches!(emptiest_corner(&series(Vec::new())), SeriesLabelPosition::UpperLeft));
    }

    #[test]
    fn a_chart_holds_its_words() {
        let line = |kind| Series {
            label: "us & them".into(),
            colour: BLUE,
            kind,
            weight: 2,
            points: vec![(10.0, 0.1), (1e5, 40.0)],
        };
        let captions = Captions { title: "a title", x: "bones", y: "ms" };
        let svg = log_log_chart(captions, &[line(SeriesKind::Line), line(SeriesKind::Crosses)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("a title") && svg.contains("us &amp; them"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(log_log_chart(captions, &[]).is_ok());
    }
}
