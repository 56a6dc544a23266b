//! The table of docs/guide/characters.md: every character among the models made by others, held at rest for ten seconds.

use std::path::Path;
use supple::{Work, step};
use supple_assets::open;

/// The first two lines.
pub(crate) const HEAD: &str = "| file | bodies | joints | mass [kg] | notes | largest gap [m] | moved [m] | fallbacks |
| --- | --- | --- | --- | --- | --- | --- | --- |";

/// What ten seconds of a file did.
pub(crate) struct Row {
    /// As it stands in the table.
    pub(crate) text: String,
    pub(crate) gap: f64,
    pub(crate) fallbacks: u64,
    pub(crate) finite: bool,
}

/// The row of a file; `None` with the reason in its place when nothing in it can be simulated.
pub(crate) fn row(path: &Path) -> Result<Row, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let imported = match open(path) {
        Ok(imported) => imported,
        Err(error) if error.code == "file/nothing" => {
            return Ok(Row {
                text: format!("| {name} | nothing to simulate: exit status 2 | | | | | | |"),
                gap: 0.0,
                fallbacks: 0,
                finite: true,
            });
        }
        Err(error) => return Err(error.to_string()),
    };
    let scene = &imported.scene;
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let (mut gap, mut fallbacks, mut moved) = (0.0f64, 0, 0.0f64);
    for _ in 0..600 {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work).map_err(|e| e.to_string())?;
        (gap, fallbacks) = (gap.max(report.max_joint_gap), fallbacks + u64::from(report.fallbacks));
    }
    for (body, start) in state.bodies.iter().zip(&scene.state.bodies) {
        moved = moved.max(body.position.distance(start.position));
    }
    // Rounding differs from machine to machine: what is below these is told as such.
    let below = |x: f64, bound: f64| if x < bound { format!("< {bound:e}") } else { format!("{x:.1e}") };
    let (bodies, joints) = (scene.model.bodies().len(), scene.model.joints().len());
    let mass = scene.model.mass();
    let mass = if mass < 1e4 { format!("{mass:.3}") } else { format!("{mass:.2e}") };
    let text = format!(
        "| {name} | {bodies} | {joints} | {mass} | {} | {} | {} | {fallbacks} |",
        imported.notes.len(),
        below(gap, 1e-9),
        below(moved, 1e-3)
    );
    Ok(Row { text, gap, fallbacks, finite: state.is_finite() })
}
