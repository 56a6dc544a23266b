//! `supple render`: pictures, film strips and animations of a scene or a take, by a small rasteriser of our own.

mod camera;
mod coat;
mod dress;
mod figure;
mod files;
mod light;
mod marks;
mod moments;
mod raster;
mod solids;
mod stage;

use crate::error::Error;
use crate::output::{self, Outputs};
use crate::scenes::{Recorded, is_take, open_source, open_take};
use crate::settings::{self, RunArgs};
use crate::table::{self, count, given};
use crate::terminal::{Terminal, harmless};
use camera::{Ball, Camera, View};
use clap::Args;
use dress::Dress;
use figure::{Figure, Layer, Soft};
use files::{Gif, Picture};
use moments::{Posture, Source};
use serde::Serialize;
use stage::{Background, Finish, Paint, Place, Stage};
use std::path::PathBuf;
use supple::glam::{DVec3, Vec2, Vec3};
use supple::{Model, Obstacle, ObstacleShape, Scene};
use supple_assets::{Character, Imported};

/// Draw a scene: a picture, a film strip or an animation
#[derive(Args, Debug)]
pub(crate) struct RenderArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:1000), or a .take file, which is shown as recorded
    scene: String,
    #[command(flatten)]
    files: crate::scenes::FilesArgs,
    #[command(flatten)]
    character: crate::scenes::CharacterArgs,
    /// The file to write, by its ending: .png (a picture, or a film strip with --strip) or .gif (an animation)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Width and height of the whole picture in pixels [default: 1280x720, strips 1600x400, animations 640x360]
    #[arg(long, value_name = "WxH", allow_hyphen_values = true)]
    size: Option<String>,
    /// The time of a picture, in seconds [default: 1]
    #[arg(long, value_name = "S", allow_hyphen_values = true, conflicts_with = "seconds")]
    at: Option<String>,
    /// How much time a strip or an animation shows, in seconds; a picture shows the end of it [default: 4, or the whole take]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    seconds: Option<String>,
    /// Where a strip or an animation begins, in seconds [default: 0]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    from: Option<String>,
    /// Where a strip or an animation ends, in seconds
    #[arg(long, value_name = "S", allow_hyphen_values = true, conflicts_with = "seconds")]
    to: Option<String>,
    /// Pictures a second of an animation, 1 to 50 [default: 25]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    fps: Option<u32>,
    /// Show so many moments side by side, 2 to 24
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=24))]
    strip: Option<u32>,
    /// Look from yaw degrees to the side and pitch degrees above; zoom 2 shows everything twice as large [default: 29,18,1]
    #[arg(long, value_name = "YAW,PITCH,ZOOM", allow_hyphen_values = true)]
    camera: Option<String>,
    /// What is behind
    #[arg(long, value_name = "NAME", default_value = "light")]
    background: Background,
    /// What to show; bones and joints lie over the rest
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_value = "mesh")]
    layers: Vec<Layer>,
    #[command(flatten)]
    states: crate::states::StateArgs,
    #[command(flatten)]
    run: RunArgs,
    /// Print what was written as one JSON document
    #[arg(long)]
    json: bool,
}

/// What was written. The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    scene: String,
    kind: &'static str,
    width: usize,
    height: usize,
    /// Moments shown.
    frames: usize,
    /// Time of the first \[s\].
    from: f64,
    /// Time of the last \[s\].
    to: f64,
    /// How long an animation lasts or a strip reaches; 0 of a picture \[s\].
    seconds: f64,
}

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Picture,
    Strip(usize),
    Animation {
        /// Frames per second.
        fps: u32,
    },
}

/// Most pixels of a picture.
const MOST_PIXELS: usize = 16_000_000;
/// Longest side of a picture.
const LONGEST: usize = 16_000;
/// Most frames of an animation: two minutes at 25 a second.
const MOST_FRAMES: f64 = 3000.0;
/// Most bodies, as in the studio: with their triangles they fill a gigabyte.
const MOST_BODIES: usize = supple_studio::MAX_BODIES;
/// Most poses that are kept, of all bodies in all frames: some 300 MB.
const MOST_POSES: usize = 5_000_000;
/// Pixels between the moments of a strip.
const GAP: usize = 4;
/// An animation chooses its colours from one in eight of its frames, and from this many at most.
const PALETTE_FRAMES: usize = 6;

/// Draws, writes, tells.
pub(crate) fn run(args: &RenderArgs, terminal: &Terminal) -> Result<(), Error> {
    let kind = args.kind()?;
    let [width, height] = args.size(kind)?;
    let camera = args.camera.as_deref().map_or(Ok(Camera::default()), Camera::parse)?;
    let (source, dress) = args.open(terminal)?;
    let times = args.times(kind, &source)?;
    let model = &source.scene().model;
    if model.bodies().len() > MOST_BODIES {
        return Err(Error::setting(
            format!("{} are too many to draw", count(model.bodies().len(), "body", "bodies")),
            format!("ask for a scene of up to {}", table::grouped(MOST_BODIES)),
        ));
    }
    if times.len() * model.bodies().len() > MOST_POSES {
        return Err(Error::setting(
            format!(
                "{} of {} are too many",
                count(times.len(), "frame", "frames"),
                count(model.bodies().len(), "body", "bodies")
            ),
            "show less time, fewer frames a second or a smaller scene",
        ));
    }
    let poses = source.poses(&times, terminal)?;

    let panel = match kind {
        Kind::Strip(count) => (width - GAP * (count - 1)) / count,
        _ => width,
    };
    let shot = Shot::new(model, dress, &poses, &args.layers, camera, args.background, [panel, height])?;
    let bar = terminal.progress(poses.len() as u64, "pictures");
    bar.set_message(harmless(&source.scene().name).into_owned());
    bar.tick();
    match kind {
        Kind::Picture => files::write_png(&args.output, &shot.picture(&poses[0], width))?,
        Kind::Strip(_) => files::write_png(&args.output, &shot.strip(&poses, width, || bar.inc(1)))?,
        Kind::Animation { fps } => {
            let chosen = poses.len().div_ceil(8).min(PALETTE_FRAMES);
            let some: Vec<Picture> =
                (0..chosen).map(|k| shot.picture(&poses[k * poses.len() / chosen], width)).collect();
            let mut gif = Gif::create(&args.output, &some)?;
            drop(some);
            // A frame lasts whole hundredths of a second: each begins at the one nearest to its time.
            let begins = |k: usize| (100.0 * k as f64 / f64::from(fps)).round();
            for (k, poses) in poses.iter().enumerate() {
                gif.add(&shot.picture(poses, width), (begins(k + 1) - begins(k)) as u16)?;
                bar.inc(1);
            }
            gif.finish()?;
        }
    }
    bar.finish_and_clear();

    let (from, to) = (times[0], times[times.len() - 1]);
    let report = Report {
        file: args.output.display().to_string(),
        scene: source.scene().name.clone(),
        kind: kind.name(),
        width,
        height,
        frames: times.len(),
        from,
        to,
        seconds: match kind {
            Kind::Animation { fps } => times.len() as f64 / f64::from(fps),
            _ => to - from,
        },
    };
    if args.json {
        output::print_json(&report)?;
    } else {
        let shown = match kind {
            Kind::Picture => format!("{} at {} s", report.scene, given(to)),
            Kind::Strip(n) => format!("{} at {n} moments from {} to {} s", report.scene, given(from), given(to)),
            Kind::Animation { fps } => format!(
                "{} for {} s from {} s, {} at {fps} a second",
                report.scene,
                given(report.seconds),
                given(from),
                count(report.frames, "frame", "frames")
            ),
        };
        let pairs = [(report.kind, format!("{width} × {height}")), ("shows", shown)];
        output::print(|out| table::write_pairs(out, terminal, &pairs))?;
    }
    terminal.note(format_args!("wrote {}", args.output.display()));
    Ok(())
}

/// A scene at these times side by side, as the bytes of a PNG: for pages.
pub(crate) fn film(
    scene: Scene,
    times: &[f64],
    [width, height]: [usize; 2],
    camera: &str,
    terminal: &Terminal,
) -> Result<Vec<u8>, Error> {
    let input = scene.input.clone();
    let source = Source::Run(scene, Box::new(input));
    let poses = source.poses(times, terminal)?;
    let panel = (width - GAP * (times.len() - 1)) / times.len();
    let (model, camera) = (&source.scene().model, Camera::parse(camera)?);
    let shot = Shot::new(model, Dress::default(), &poses, &[Layer::Mesh], camera, Background::Light, [panel, height])?;
    files::png(&shot.strip(&poses, width, || {}))
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Picture => "picture",
            Kind::Strip(_) => "strip",
            Kind::Animation { .. } => "animation",
        }
    }
}

impl RenderArgs {
    /// The scene or take, and what its file shows.
    fn open(&self, terminal: &Terminal) -> Result<(Source, Dress), Error> {
        let files = self.files.with(&self.character)?;
        let wears = self.layers.contains(&Layer::Mesh);
        let dressed = |scene: &Scene, imported: &Imported, character: Option<&Character>| match wears {
            true => Dress::of(scene, imported, character, terminal).map_err(|e| Error::file(&e)),
            false => Ok(Dress::default()),
        };
        if is_take(&self.scene) {
            self.run.refuse_for_take()?;
            self.states.refuse_for_take()?;
            let (recorded, file) = open_take(&self.scene, &files)?;
            let (scene, dress) = match recorded {
                Recorded::Scene(made) => (made.0, Dress::default()),
                Recorded::File(made) => {
                    let scene = made.imported.scene.clone();
                    let dress = dressed(&scene, &made.imported, made.character.as_ref())?;
                    (scene, dress)
                }
            };
            return Ok((Source::take(scene, file)?, dress));
        }
        let opened = open_source(&self.scene, &files)?;
        let dress = match &opened.file {
            Some(imported) => {
                let character = crate::scenes::character(&self.scene, &files)?;
                dressed(&opened.scene, imported, character.as_ref())?
            }
            None => Dress::default(),
        };
        let mut scene = self.states.put(opened.scene)?;
        scene.state = crate::scenes::start(&scene, terminal)?;
        let input = self.run.input(&scene)?;
        Ok((Source::Run(scene, Box::new(input)), dress))
    }

    /// What the ending and the options ask for.
    fn kind(&self) -> Result<Kind, Error> {
        let files = Outputs::check(std::slice::from_ref(&self.output), &["png", "gif"])?;
        let moving = files.ending("gif").next().is_some();
        let wrong = |what: &str, help: &str| Err(Error::setting(what, help));
        match (moving, self.strip) {
            (true, Some(_)) => {
                wrong("a strip is one picture, and a .gif moves", "give a file that ends in .png, or leave out --strip")
            }
            (true, None) if self.at.is_some() => {
                wrong("--at is the time of a picture, and a .gif moves", "give --from and --to")
            }
            (true, None) => Ok(Kind::Animation { fps: self.fps.unwrap_or(25) }),
            (false, Some(_)) if self.at.is_some() => {
                wrong("--at is the time of one picture, not of a strip", "give --from and --to")
            }
            (false, _) if self.fps.is_some() => {
                wrong("--fps is for animations", "give a file that ends in .gif, or leave out --fps")
            }
            (false, Some(count)) => Ok(Kind::Strip(count as usize)),
            (false, None) if self.from.is_some() || self.to.is_some() => wrong(
                "--from and --to are for strips and animations",
                "give --at for a picture, --strip for a strip, or a .gif",
            ),
            (false, None) => Ok(Kind::Picture),
        }
    }

    /// Width and height.
    fn size(&self, kind: Kind) -> Result<[usize; 2], Error> {
        let Some(text) = &self.size else {
            return Ok(match kind {
                Kind::Picture => [1280, 720],
                Kind::Strip(_) => [1600, 400],
                Kind::Animation { .. } => [640, 360],
            });
        };
        let wrong = |help: String| Error::setting(format!("--size cannot be \"{text}\""), help);
        let words = text.split_once(['x', 'X', '×']);
        let size = words.and_then(|(w, h)| Some([w.trim().parse::<usize>().ok()?, h.trim().parse().ok()?]));
        let Some([width, height]) = size else {
            return Err(wrong("give width and height in pixels, such as 1280x720".into()));
        };
        if width == 0 || height == 0 {
            return Err(wrong("a picture has at least one pixel each way: give more, such as 1280x720".into()));
        }
        if width > LONGEST || height > LONGEST || width * height > MOST_PIXELS {
            return Err(wrong(format!(
                "give at most {} pixels in all and {} along a side",
                table::grouped(MOST_PIXELS),
                table::grouped(LONGEST)
            )));
        }
        if let Kind::Strip(count) = kind
            && width < count * (GAP + 8)
        {
            return Err(wrong(format!("{count} moments need a width of at least {}", count * (GAP + 8))));
        }
        Ok([width, height])
    }

    /// The times to show, in order \[s\].
    fn times(&self, kind: Kind, source: &Source) -> Result<Vec<f64>, Error> {
        let end = source.end();
        let time = |option: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => settings::time(option, text).map(Some),
        };
        let seconds = time("--seconds", &self.seconds)?;
        let (from, to) = match kind {
            Kind::Picture => {
                let at = time("--at", &self.at)?.or(seconds).unwrap_or(end.map_or(1.0, |end| end.min(1.0)));
                (at, at)
            }
            _ => {
                let from = time("--from", &self.from)?.unwrap_or(0.0);
                let to = time("--to", &self.to)?.or(seconds.map(|s| from + s));
                (from, to.unwrap_or(end.unwrap_or(from + 4.0)))
            }
        };
        if let Some(end) = end
            && to > end + 1e-9
        {
            return Err(Error::setting(
                format!("the take has no {} s", given(to)),
                format!("it is {} s long: ask for a time up to that", given(end)),
            ));
        }
        if let Source::Run(_, input) = source {
            settings::check_reach(to, input.dt)?;
        }
        let wrong = || {
            Error::setting(
                format!("there is no time from {} to {} s", given(from), given(to)),
                "let --to be later than --from",
            )
        };
        Ok(match kind {
            Kind::Picture => vec![to],
            _ if to <= from => return Err(wrong()),
            Kind::Strip(count) => (0..count).map(|k| from + (to - from) * k as f64 / (count - 1) as f64).collect(),
            Kind::Animation { fps } => {
                let frames = ((to - from) * f64::from(fps)).round().max(1.0);
                if frames > MOST_FRAMES {
                    return Err(Error::setting(
                        format!(
                            "that is {} frames, and {} is the most",
                            given(frames),
                            table::grouped(MOST_FRAMES as usize)
                        ),
                        "show less time or fewer frames a second",
                    ));
                }
                (0..frames as usize).map(|k| from + k as f64 / f64::from(fps)).collect()
            }
        })
    }
}

/// Everything that the pictures of one motion share.
struct Shot {
    /// What is drawn; later ones lie over earlier ones.
    figures: Vec<Figure>,
    /// What throws shadows: the first figure with fewer sides.
    casters: Figure,
    flesh: Option<Soft>,
    dress: Dress,
    model: Model,
    paints: Vec<Paint>,
    camera: Camera,
    balls: Vec<Ball>,
    place: Place,
    origin: DVec3,
    background: Background,
    height: usize,
}

impl Shot {
    /// Frames the whole motion on a picture of this size.
    fn new(
        model: &Model,
        dress: Dress,
        poses: &[Posture],
        layers: &[Layer],
        camera: Camera,
        background: Background,
        [width, height]: [usize; 2],
    ) -> Result<Shot, Error> {
        // The middle of all places is the origin: single precision is then enough.
        let places = || poses.iter().flat_map(|posture| &posture.bodies).map(|pose| pose.translation);
        let low = places().fold(DVec3::INFINITY, DVec3::min);
        let high = places().fold(DVec3::NEG_INFINITY, DVec3::max);
        let origin = 0.5 * (low + high);
        let mut balls = figure::balls(model, poses, origin);
        // Meshes reach beyond the shapes in them; a dozen moments tell how far.
        let apart = poses.len().div_ceil(12).max(1);
        balls.extend(poses.iter().step_by(apart).flat_map(|posture| dress.reach(model, posture, origin)));
        let far = balls.iter().map(|ball| ball.centre.length() + ball.radius).fold(0.0, f32::max);
        if balls.is_empty() || !far.is_finite() || far <= 0.0 {
            return Err(Error::failed("cli/render", "there is nothing to be seen: no body has a shape".to_owned()));
        }
        let least = balls.iter().fold(Vec3::INFINITY, |m, b| m.min(b.centre - Vec3::splat(b.radius)));
        let most = balls.iter().fold(Vec3::NEG_INFINITY, |m, b| m.max(b.centre + Vec3::splat(b.radius)));
        let diagonal = (most - least).length();
        let place = Place {
            ground: floor(model).unwrap_or_else(|| ground(f64::from(least.y) + origin.y, f64::from(diagonal))) as f32
                - origin.y as f32,
            centre: 0.5 * (least + most),
            radius: 0.5 * diagonal,
            origin: Vec2::new(origin.x as f32, origin.z as f32),
        };

        // Half of what lies straight below is seen too, and with it most of the shadow.
        let middle = place.centre.with_y(place.ground);
        let below = |ball: &Ball| Ball { centre: ball.centre.with_y(place.ground).lerp(middle, 0.5), radius: 0.0 };
        let ground: Vec<Ball> = balls.iter().map(below).collect();
        balls.extend(ground);
        let view = camera.fit(&balls, width, height);
        let distance = view.before(place.centre).z.max(0.5 * place.radius);
        let scale = view.focal / distance; // pixels per metre
        let fine = |radius: f32| sides(radius * scale, 1.0 / 6.0);
        let coarse = |radius: f32| sides(radius * scale, 1.0); // shadows are soft
        let is_solid = |layer: &Layer| matches!(layer, Layer::Mesh | Layer::Shapes);
        let markings: Vec<Layer> = layers.iter().copied().filter(|layer| !is_solid(layer)).collect();
        let (mut figures, casters) = if layers.iter().any(is_solid) {
            // Shapes that were asked for lie within the mesh that is drawn too, or show through it.
            let hidden: &[bool] = if layers.contains(&Layer::Shapes) { &[] } else { &dress.hidden };
            (vec![Figure::shapes(model, hidden, fine)], Figure::shapes(model, hidden, coarse))
        } else {
            (Vec::new(), Figure::markings(model, &markings, Finish::Solid, coarse))
        };
        if !markings.is_empty() {
            let finish = if figures.is_empty() { Finish::Solid } else { Finish::Marking };
            figures.push(Figure::markings(model, &markings, finish, fine));
        }
        let flesh = if layers.iter().any(is_solid) { Soft::of(model) } else { None };
        let paints = figures.iter().flat_map(Figure::paints);
        let paints = paints.chain(flesh.iter().flat_map(Soft::paints)).chain(dress.paints()).collect();
        let model = model.clone();
        Ok(Shot { figures, casters, flesh, dress, model, paints, camera, balls, place, origin, background, height })
    }

    /// Moments side by side; calls `drawn` after each.
    fn strip(&self, poses: &[Posture], width: usize, drawn: impl Fn()) -> Picture {
        let mut strip = Picture::plain(width, self.height, self.background.gap());
        for (k, posture) in poses.iter().enumerate() {
            // Each ends where its share of the width does: no pixel is left over.
            let edge = |k: usize| k * (width + GAP) / poses.len();
            strip.paste(&self.picture(posture, edge(k + 1) - GAP - edge(k)), edge(k));
            drawn();
        }
        strip
    }

    /// The bodies in these poses.
    fn picture(&self, posture: &Posture, width: usize) -> Picture {
        let view: View = self.camera.fit(&self.balls, width, self.height);
        let mut first = 0;
        let mut surfaces = Vec::with_capacity(self.figures.len());
        for figure in &self.figures {
            surfaces.push(figure.surface(posture, self.origin, first));
            first += figure.paints().count();
        }
        let mut casters = self.casters.surface(posture, self.origin, 0);
        if let Some(flesh) = &self.flesh {
            surfaces[0].append(flesh.surface(&posture.flesh, self.origin, first));
            casters.append(flesh.surface(&posture.flesh, self.origin, 0));
            first += flesh.paints().count();
        }
        if self.dress.paints().next().is_some() {
            surfaces[0].append(self.dress.surface(&self.model, posture, self.origin, first));
            casters.append(self.dress.casters(&self.model, posture, self.origin));
        }
        let coats = (&self.paints[..], &self.dress.coats[..]);
        let stage = Stage::new(&view, self.place, self.background, coats, &casters);
        let light = raster::draw(&surfaces, &view, &stage);
        let pixels = light.into_iter().map(stage::encode).collect();
        let mut picture = Picture { width, height: self.height, pixels };
        marks::draw(posture, &view, self.origin, &mut picture);
        picture
    }
}

/// The height of the ground below a motion whose lowest point is at `lowest`: the floor of the world where the character
/// stands on it or a little above, else some way below \[m\].
fn ground(lowest: f64, diagonal: f64) -> f64 {
    let gap = 0.15 * diagonal;
    if (-0.01..=gap).contains(&lowest) { 0.0 } else { lowest - gap }
}

/// The height of the first level half-space of a model \[m\].
fn floor(model: &Model) -> Option<f64> {
    let level = |o: &&Obstacle| o.shape == ObstacleShape::HalfSpace && (o.pose.rotation * DVec3::Y).y > 1.0 - 1e-9;
    model.obstacles().iter().find(level).map(|o| o.pose.translation.y)
}

/// Sides of a circle with this radius, so that no chord is further from it than `off` \[pixels\]: `r (1 − cos π/n) ≈ r π²/2n²`.
fn sides(radius: f32, off: f32) -> usize {
    let exact = std::f32::consts::PI * (0.5 * radius.max(0.0) / off).sqrt();
    (exact.clamp(8.0, 96.0) / 4.0).ceil() as usize * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chords_are_near_to_their_circle() {
        for (radius, off) in [(10.0f32, 0.17), (50.0, 1.0), (300.0, 1.0)] {
            let n = sides(radius, off);
            assert!(n.is_multiple_of(4) && radius * (1.0 - (std::f32::consts::PI / n as f32).cos()) <= off, "{radius}");
        }
        assert_eq!((sides(0.0, 1.0), sides(f32::INFINITY, 1.0)), (8, 96));
    }

    #[test]
    fn the_ground_is_the_floor_or_below() {
        // Standing, hovering a little, hanging below, far above.
        assert_eq!(ground(0.0, 2.0), 0.0);
        assert_eq!(ground(0.2, 2.0), 0.0);
        assert_eq!(ground(-1.0, 2.0), -1.3);
        assert_eq!(ground(5.0, 2.0), 4.7);
    }
}
