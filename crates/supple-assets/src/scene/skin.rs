//! Soft skin as a scene file asks for it.

use super::schema::{MapName, SceneFile, SkinEdit};
use super::{Text, fits};
use crate::{Character, FileError, Imported, Inner, SkinPlan};
use supple::skin::Depth;
use supple::{PoseMap, SkinMaterial};
use toml::Spanned;

/// The character in the skin that the file tells of.
pub(super) fn skinned(
    imported: &Imported,
    character: &Character,
    text: &Text<'_>,
    file: &SceneFile,
) -> Result<Imported, FileError> {
    for (pattern, edit) in &file.skin {
        if !character.rig.bones.iter().any(|bone| fits(pattern.get_ref(), &bone.name)) {
            let what = format!("no bone fits \"{}\"", pattern.get_ref());
            let names: Vec<&str> = character.rig.bones.iter().map(|bone| bone.name.as_str()).collect();
            let remedy = format!("give one of {}, or a pattern such as \"*arm*\"", few(&names));
            return Err(text.wrong(pattern.span(), what, remedy));
        }
        check(text, edit)?;
    }
    for (name, edit) in &file.painted {
        if !imported.has_group(name.get_ref()) {
            let what = format!("there is no painted group \"{}\"", name.get_ref());
            let remedy = match imported.group_names()[..] {
                [] => "the meshes have none: paint vertex colours (COLOR_0), or an attribute whose name begins with _, and export them".into(),
                ref names => format!("give one of {}", few(names)),
            };
            return Err(text.wrong(name.span(), what, remedy));
        }
        if edit.soft == Some(false) {
            let what = "what is painted cannot be told to be hard";
            return Err(text.wrong(name.span(), what, "leave the group out, and give its bones soft = false"));
        }
        check(text, edit)?;
    }
    let flesh = |bone: &str| {
        let told = file.skin.iter().filter(|(pattern, _)| fits(pattern.get_ref(), bone));
        let (mut material, mut soft) = (SkinMaterial::default(), false);
        for (_, edit) in told {
            soft = edit.soft.unwrap_or(true);
            change(&mut material, edit);
        }
        soft.then_some(material)
    };
    let painted = file.painted.iter().map(|(name, edit)| {
        let mut material = SkinMaterial::default();
        change(&mut material, edit);
        (name.get_ref().clone(), material)
    });
    let layer = file.layer.as_ref().map(Spanned::get_ref);
    let inner = match layer.and_then(|layer| layer.inner.as_ref()) {
        Some(name) => Some(open_inner(text, name)?),
        None => None,
    };
    let map = match layer.and_then(|layer| layer.map) {
        None | Some(MapName::Centres) => PoseMap::Centres,
        Some(MapName::Linear) => PoseMap::Linear,
    };
    let plan = SkinPlan { flesh: &flesh, painted: painted.collect(), inner, map };
    imported.with_planned_skin(&plan).map_err(|what| {
        let inner = layer.and_then(|layer| layer.inner.as_ref()).map(Spanned::span);
        let first = file.skin.keys().chain(file.painted.keys()).next().map(Spanned::span);
        let place = inner.filter(|_| what.contains("inner") || what.contains("tetrahedra")).or(first);
        let remedy =
            "correct the values, or mend the mesh in the modelling tool: closed, no face twice, all facing outwards";
        text.wrong(place.unwrap_or(0..0), format!("the character gets no skin: {what}"), remedy)
    })
}

/// Some of the names, for a message.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { " …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}

/// Tells which value cannot be.
fn check(text: &Text<'_>, edit: &SkinEdit) -> Result<(), FileError> {
    type Fits = fn(f64) -> bool;
    let above: (Fits, _) = (|x| x > 0.0 && x < 1e12, "give a number above 0");
    let not_below: (Fits, _) = (|x| (0.0..1e12).contains(&x), "give a number, 0 or more");
    let ratio: (Fits, _) = (|x| (0.0..0.4999).contains(&x), "give a number from 0 to below 0.4999");
    for (value, name, (fits, remedy)) in [
        (&edit.depth, "depth", (above.0, "give metres above 0")),
        (&edit.stiffness, "stiffness", above),
        (&edit.poisson, "poisson", ratio),
        (&edit.density, "density", above),
        (&edit.damping, "damping", not_below),
        (&edit.mass_scale, "mass_scale", above),
        (&edit.friction, "friction", not_below),
    ] {
        if let Some(told) = value.as_ref().filter(|told| !fits(*told.get_ref())) {
            return Err(text.wrong(told.span(), format!("{name} is {}", crate::plain(*told.get_ref())), remedy));
        }
    }
    Ok(())
}

/// Takes what an entry tells into a material.
fn change(material: &mut SkinMaterial, edit: &SkinEdit) {
    let told = |value: &Option<Spanned<f64>>, into: &mut f64| *into = value.as_ref().map_or(*into, |v| *v.get_ref());
    told(&edit.stiffness, &mut material.young);
    told(&edit.poisson, &mut material.poisson);
    told(&edit.density, &mut material.density);
    told(&edit.damping, &mut material.damping);
    told(&edit.mass_scale, &mut material.mass_scale);
    told(&edit.friction, &mut material.friction);
    if let Some(depth) = &edit.depth {
        material.depth = Depth::Metres(*depth.get_ref());
    }
}

/// The inner side of the layer, from a file beside the scene file.
fn open_inner(text: &Text<'_>, name: &Spanned<String>) -> Result<Inner, FileError> {
    Inner::read(text.beside(name)?)
        .map_err(|e| text.wrong(name.span(), format!("{}: {}", name.get_ref(), e.what), e.remedy))
}
