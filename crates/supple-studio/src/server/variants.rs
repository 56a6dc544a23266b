//! Variants of a part of a take, computed for whoever looks at them.

use super::*;
use crate::variants::{Part, PartError, Variation};
use supple::Input;

/// The part of a take that a variant is made of, and what is different in it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantAsked {
    from: u64,
    to: u64,
    every: NonZeroU32,
    strength: Option<f64>,
    delay: Option<f64>,
    style: Option<f64>,
    gravity: Option<f64>,
    seed: Option<u32>,
}

impl VariantAsked {
    fn variation(&self) -> Result<Variation, String> {
        let usual = Variation::default();
        let variation = Variation {
            strength: self.strength.unwrap_or(usual.strength),
            delay: self.delay.unwrap_or(usual.delay),
            style: self.style.unwrap_or(usual.style),
            gravity: self.gravity.unwrap_or(usual.gravity),
            seed: self.seed.unwrap_or(usual.seed),
        };
        variation.check().map(|()| variation)
    }
}

/// The poses of a variant, which is computed beside the run and kept nowhere.
pub(super) async fn variant(
    State(desk): State<Arc<Desk>>,
    Path(take): Path<usize>,
    RawQuery(words): RawQuery,
) -> Response {
    let asked = asked::<VariantAsked>(words.as_deref()).and_then(|asked| Ok((asked.variation()?, asked)));
    let (variation, asked) = match asked {
        Ok(asked) => asked,
        Err(what) => return refuse(StatusCode::BAD_REQUEST, "studio/value", what),
    };
    let permit = turn(&desk.turns.compare).await;
    let Some(copied) = copy(&desk).await else { return stopped() };
    if copied.timeline.takes().get(take).is_none_or(|take| take.is_removed()) {
        return refuse(StatusCode::NOT_FOUND, "studio/take", format!("there is no take {take}"));
    }
    let compute = move || {
        let (model, every) = (&copied.scene.model, asked.every.get() as usize);
        let mut work = Work::new(model);
        let part =
            Part::read(model, &copied.timeline, take, (asked.from, asked.to), &mut work).map_err(|e| match e {
                PartError::Value(what) => what,
                PartError::Take(error) => error.to_string(),
            })?;
        let rows = part.steps().div_ceil(every);
        let mut out = Vec::with_capacity(16 + 28 * rows * model.bodies().len());
        for number in [
            (asked.from as u32).saturating_add(asked.every.get()),
            asked.every.get(),
            rows as u32,
            model.bodies().len() as u32,
        ] {
            out.extend(number.to_le_bytes());
        }
        let (mut done, steps) = (0, part.steps());
        let each = |_: &Input, state: &supple::State| {
            done += 1;
            if done % every != 0 && done != steps {
                return;
            }
            for body in &state.bodies {
                let numbers = body.position.to_array().into_iter().chain(body.orientation.to_array());
                out.extend(numbers.flat_map(|x| (x as f32).to_le_bytes()));
            }
        };
        part.run(model, &variation, &mut work, each).map_err(|error| error.to_string())?;
        Ok::<_, String>(out)
    };
    match tokio::task::spawn_blocking(compute).await {
        Ok(Ok(bytes)) => {
            let kind = (header::CONTENT_TYPE, "application/octet-stream".to_owned());
            let headers = [kind, (header::CONTENT_LENGTH, bytes.len().to_string())];
            (headers, held_body(bytes, permit)).into_response()
        }
        Ok(Err(what)) => refuse(StatusCode::BAD_REQUEST, "studio/value", what),
        Err(_) => stopped(),
    }
}
