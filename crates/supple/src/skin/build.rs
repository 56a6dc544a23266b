//! From a surface, its weights and its materials to the skin of a model.

use super::given::GivenLayer;
use super::layer::{self, Layer};
use super::pose::{self, PoseMap};
use super::{INFLUENCES, Influence, Skin, prune};
use crate::flesh::{FleshMaterial, SurfaceMesh};
use crate::maths::Pose;
use crate::maths::points::PointMatrix;
use crate::model::{Body, BodyId, BodyRef};
use glam::{DMat3, DVec3};

/// Skin to be put on a model.
#[derive(Clone, Debug)]
pub struct SkinSpec {
    /// Closed, in the rest pose; [`layer::close`] makes one of most meshes.
    pub surface: SurfaceMesh,
    /// For each vertex up to four bones of `bones` with their shares.
    pub weights: Vec<[(u32, f64); INFLUENCES]>,
    /// The bodies that carry it.
    pub bones: Vec<SkinBone>,
    /// Vertex groups with materials of their own.
    pub painted: Vec<Painted>,
    /// How bones carry the surface.
    pub map: PoseMap,
    /// The layer between two surfaces, when it is given.
    pub inner: Option<GivenLayer>,
}

impl SkinSpec {
    /// This skin and that of another character of the model: they touch and dent each other as limbs of one do. Both must be carried in the same way, and
    /// both or neither have an inner place given for each vertex; tetrahedra of their own cannot be joined.
    pub fn beside(mut self, other: SkinSpec) -> Result<SkinSpec, String> {
        if self.map != other.map {
            return Err(format!("one skin is carried by {:?}, the other by {:?}", self.map, other.map));
        }
        let (vertices, bones) = (self.surface.vertices.len(), self.bones.len() as u32);
        let others = other.surface.vertices.len();
        self.inner = match (self.inner, other.inner) {
            (Some(GivenLayer::Inner(inner)), Some(GivenLayer::Inner(more))) => {
                Some(GivenLayer::Inner([inner, more].concat()))
            }
            (None, None) => None,
            (Some(GivenLayer::Tets(_)), _) | (_, Some(GivenLayer::Tets(_))) => {
                return Err("a skin with tetrahedra of its own cannot be joined to another".into());
            }
            _ => return Err("one skin has an inner surface, the other has none".into()),
        };
        let is_coloured = [&self.surface, &other.surface].iter().any(|surface| !surface.colours.is_empty());
        if is_coloured {
            self.surface.colours.resize(vertices, PLAIN);
            self.surface.colours.extend(&other.surface.colours);
            self.surface.colours.resize(vertices + others, PLAIN);
        }
        self.surface.vertices.extend(other.surface.vertices);
        self.surface.triangles.extend(other.surface.triangles.iter().map(|t| t.map(|v| v + vertices as u32)));
        self.weights.extend(other.weights.iter().map(|list| list.map(|(bone, weight)| (bone + bones, weight))));
        self.bones.extend(other.bones);
        self.painted.iter_mut().for_each(|group| group.shares.resize(vertices + others, 0.0));
        self.painted.extend(
            other
                .painted
                .into_iter()
                .map(|group| Painted { shares: [vec![0.0; vertices], group.shares].concat(), ..group }),
        );
        Ok(self)
    }
}

/// The colour of skin without colours beside one that has some.
const PLAIN: [f32; 3] = [0.6, 0.5, 0.45];

/// A body that carries skin.
#[derive(Clone, Debug)]
pub struct SkinBone {
    /// The body.
    pub body: BodyRef,
    /// `world_from_link` in the rest pose; `None` when that is where the body starts.
    pub rest: Option<Pose>,
    /// What its flesh is made of; `None`: the skin is fixed to it.
    pub flesh: Option<SkinMaterial>,
    /// Whether the body's mass is that of the bone alone.
    pub core: Core,
}

/// What the mass of a body under skin stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Core {
    /// The bone alone: that of the skin comes to it.
    #[default]
    Bone,
    /// Bone and skin together: that of the skin's surface is taken off, and a fifth is left in any case.
    Whole,
}

/// Share of its mass that a body keeps when that of the skin is taken off.
const LEAST_CORE: f64 = 0.2;

/// A vertex group with a material of its own.
#[derive(Clone, Debug)]
pub struct Painted {
    /// How much of it each vertex has, from 0 to 1.
    pub shares: Vec<f64>,
    /// What it is made of.
    pub material: SkinMaterial,
}

/// How thick the layer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depth {
    /// In metres.
    Metres(f64),
    /// Of half the way through the body.
    Share(f64),
}

/// What skin is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkinMaterial {
    /// Young's modulus \[Pa\].
    pub young: f64,
    /// Poisson's ratio, from 0 to below 0.4999.
    pub poisson: f64,
    /// \[kg/m³\]
    pub density: f64,
    /// Thickness of the layer.
    pub depth: Depth,
    /// Damping against the bones \[1/s\].
    pub damping: f64,
    /// Multiplies the mass of the surface's vertices: more makes it wobble.
    pub mass_scale: f64,
    /// Coefficient of friction.
    pub friction: f64,
}

impl Default for SkinMaterial {
    fn default() -> SkinMaterial {
        SkinMaterial {
            young: 1e5,
            poisson: 0.4,
            density: 1000.0,
            depth: Depth::Share(0.4),
            damping: 10.0,
            mass_scale: 1.0,
            friction: 0.5,
        }
    }
}

impl SkinMaterial {
    fn fault(&self) -> Option<String> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        let depth = match self.depth {
            Depth::Metres(d) => positive(d),
            Depth::Share(s) => positive(s) && s <= 1.0,
        };
        if !(positive(self.young) && positive(self.density) && positive(self.mass_scale)) {
            let (e, rho, scale) = (self.young, self.density, self.mass_scale);
            return Some(format!(
                "its stiffness is {e} Pa, its density {rho} kg/m³, its mass scale {scale}: all must be above 0"
            ));
        }
        if !(0.0..0.4999).contains(&self.poisson) {
            return Some(format!("its Poisson ratio is {}: it must be from 0 to below 0.4999", self.poisson));
        }
        if !(not_negative(self.damping) && not_negative(self.friction)) {
            return Some(format!(
                "its damping is {} 1/s, its friction {}: neither may be negative",
                self.damping, self.friction
            ));
        }
        (!depth).then(|| format!("its depth is {:?}: it must be above 0, and a share no more than 1", self.depth))
    }
}

/// A material as it is at one vertex.
#[derive(Clone, Copy, Debug, Default)]
struct Local {
    young: f64,
    poisson: f64,
    density: f64,
    damping: f64,
    mass_scale: f64,
    friction: f64,
    depth: f64,
}

impl Local {
    fn new(m: &SkinMaterial, radius: f64) -> Local {
        let depth = match m.depth {
            Depth::Metres(d) => d,
            Depth::Share(s) => s * radius,
        };
        let SkinMaterial { young, poisson, density, damping, mass_scale, friction, .. } = *m;
        Local { young, poisson, density, damping, mass_scale, friction, depth }
    }

    fn add(&mut self, w: f64, m: &Local) {
        self.young += w * m.young;
        self.poisson += w * m.poisson;
        self.density += w * m.density;
        self.damping += w * m.damping;
        self.mass_scale += w * m.mass_scale;
        self.friction += w * m.friction;
        self.depth += w * m.depth;
    }

    fn towards(self, w: f64, m: &Local) -> Local {
        let mut out = Local::default();
        out.add(1.0 - w, &self);
        out.add(w, m);
        out
    }
}

/// Skin whose bodies do not know their places yet.
pub(crate) struct Attached {
    skin: Skin,
    /// By bone of the spec: its body, the rest pose of its link, and what its mass stands for.
    rests: Vec<(BodyId, Option<Pose>, Core)>,
    /// What the inner nodes and their bodies add: body, place at the start of the rest pose, mass.
    carried: Vec<(u32, DVec3, f64)>,
}

/// Vertices with no more than this share of soft bones do not move beside them.
const SOFT: f64 = 0.01;

/// Tells what is wrong, or makes the skin. `holders` are the bodies of the spec's bones.
pub(crate) fn attach(spec: SkinSpec, holders: &[BodyId], bodies: usize) -> Result<Attached, String> {
    let SkinSpec { surface, weights, bones, painted, map, inner } = spec;
    if let Some(what) = surface.fault() {
        return Err(format!("its surface is wrong: {what}"));
    }
    let n = surface.vertices.len();
    if weights.len() != n {
        return Err(format!("it has weights for {} vertices of {n}", weights.len()));
    }
    if let Some(what) = bones.iter().filter_map(|bone| bone.flesh.as_ref()?.fault()).next() {
        return Err(what);
    }
    if let Some(what) = painted.iter().find_map(|group| group.material.fault()) {
        return Err(what);
    }
    if let Some(k) = painted
        .iter()
        .position(|group| group.shares.len() != n || group.shares.iter().any(|x| !(0.0..=1.0).contains(x)))
    {
        return Err(format!("painted group {k} must have a share from 0 to 1 for each of {n} vertices"));
    }

    // Influences: by body, largest first, adding up to 1
    let (mut influences, mut counts) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for (v, list) in weights.iter().enumerate() {
        let (mut own, mut count) = ([Influence::default(); INFLUENCES], 0);
        for &(bone, w) in list.iter().filter(|(_, w)| *w > 0.0 || !w.is_finite()) {
            let Some(body) = holders.get(bone as usize) else {
                return Err(format!("vertex {v} follows bone {bone}, which does not exist"));
            };
            if !w.is_finite() {
                return Err(format!("a weight of vertex {v} is not finite"));
            }
            match own[..count].iter_mut().find(|i| i.body == body.0) {
                Some(same) => same.weight += w,
                None => {
                    own[count] = Influence { body: body.0, weight: w };
                    count += 1;
                }
            }
        }
        let sum: f64 = own.iter().map(|i| i.weight).sum();
        if count == 0 || sum <= 0.0 {
            return Err(format!("vertex {v} follows no bone"));
        }
        own.iter_mut().for_each(|i| i.weight /= sum);
        own[..count].sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.body.cmp(&b.body)));
        influences.push(own);
        counts.push(count as u8);
    }

    // Materials by vertex
    let (low, high) = surface.bounds();
    let radii = layer::radii(&surface, 0.5 * (high - low).max_element());
    let of_body = |body: u32| {
        let k = holders.iter().position(|h| h.0 == body)?;
        bones[k].flesh.as_ref()
    };
    let hard = SkinMaterial::default();
    let (mut soft, mut local) = (vec![false; n], Vec::with_capacity(n));
    for v in 0..n {
        let (mut mixed, mut share) = (Local::default(), 0.0);
        for i in &influences[v][..counts[v] as usize] {
            let material = of_body(i.body);
            share += if material.is_some() { i.weight } else { 0.0 };
            mixed.add(i.weight, &Local::new(material.unwrap_or(&hard), radii[v]));
        }
        for group in &painted {
            share = share.max(group.shares[v]);
            mixed = mixed.towards(group.shares[v], &Local::new(&group.material, radii[v]));
        }
        soft[v] = share > SOFT;
        local.push(mixed);
    }

    let mut surface = surface;
    let layer = match inner {
        Some(GivenLayer::Inner(inner)) => Layer::between(&surface, inner)?,
        Some(GivenLayer::Tets(tets)) => {
            let within = tets.within.clone();
            let (layer, follows) = tets.under(&surface)?;
            // corners within are nodes after the vertices, carried like the nearest
            for v in follows.iter().map(|&v| v as usize) {
                influences.push(influences[v]);
                counts.push(counts[v]);
                soft.push(soft[v]);
                local.push(local[v]);
            }
            if !surface.colours.is_empty() {
                surface.colours.resize(n + within.len(), PLAIN);
            }
            surface.vertices.extend(within);
            layer
        }
        None => Layer::under(&surface, local.iter().map(|m| m.depth).collect())?,
    };
    let n = surface.vertices.len();

    // Where the layer is folded the surface does not move
    layer.folded.iter().for_each(|&v| soft[v as usize] = false);

    // K, and masses: K_ab = V (λ g_a g_bᵀ + μ g_b g_aᵀ + μ (g_a·g_b) 1)
    let free = |i: u32| (i as usize) < n && soft[i as usize];
    let sides = layer.tets.iter().flat_map(|&[a, b, c, d]| [(a, b), (b, c), (c, a), (a, d), (b, d), (c, d)]);
    let mut stiffness = PointMatrix::new(n, sides.filter(|&(a, b)| free(a) && free(b)));
    let mut masses = vec![0.0; n];
    let mut carried = Vec::new();
    for &tet in &layer.tets {
        let [a, b, c, d] = layer.corners(&surface.vertices, tet);
        let volume = layer.volume(&surface.vertices, tet);
        let rows = DMat3::from_cols(b - a, c - a, d - a).inverse().transpose();
        let g = [-(rows.x_axis + rows.y_axis + rows.z_axis), rows.x_axis, rows.y_axis, rows.z_axis];
        let follows = |i: usize| if i < n { i } else { layer.follows[i - n] as usize };
        let outer = tet.map(|i| follows(i as usize));
        let mean = |of: fn(&Local) -> f64| outer.iter().map(|&v| of(&local[v])).sum::<f64>() / 4.0;
        let material =
            FleshMaterial { young: mean(|m| m.young), poisson: mean(|m| m.poisson), ..FleshMaterial::default() };
        let lame = material.lame();
        let quarter = 0.25 * volume * mean(|m| m.density);
        for (p, &i) in tet.iter().enumerate() {
            if (i as usize) < n {
                masses[i as usize] += quarter * local[i as usize].mass_scale;
            } else {
                let v = follows(i as usize);
                for follow in &influences[v][..counts[v] as usize] {
                    carried.push((follow.body, layer.inner[i as usize - n], quarter * follow.weight));
                }
            }
            for (q, &j) in tet.iter().enumerate() {
                if i >= j && free(i) && free(j) {
                    let (ga, gb) = (g[p], g[q]);
                    let block = outer_product(ga, gb) * lame.lambda
                        + outer_product(gb, ga) * lame.mu
                        + DMat3::IDENTITY * (lame.mu * ga.dot(gb));
                    stiffness.add(i, j, block * volume);
                }
            }
        }
    }

    // Bones and the pairs that share vertices
    let mut used: Vec<u32> = influences.iter().flatten().filter(|i| i.weight > 0.0).map(|i| i.body).collect();
    used.sort_unstable();
    used.dedup();
    let pairs_of = |v: usize| {
        let own: Vec<u32> = influences[v][..counts[v] as usize].iter().map(|i| i.body).collect();
        (0..own.len()).flat_map(move |p| {
            (0..=p).map({
                let own = own.clone();
                move |q| (own[p].max(own[q]), own[p].min(own[q]))
            })
        })
    };
    let mut pairs: Vec<(u32, u32)> = (0..n).flat_map(pairs_of).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let slot_of = |pair: (u32, u32)| pairs.binary_search(&pair).map_or(0, |k| k as u32);
    let slots = (0..n)
        .map(|v| {
            let mut slots = [0; 10];
            pairs_of(v).zip(&mut slots).for_each(|(pair, slot)| *slot = slot_of(pair));
            slots
        })
        .collect();

    let centres = pose::centres(&surface, &influences, &counts);
    let sum: f64 = layer.depths.iter().sum();
    let depth = sum / n as f64;
    let lengths: f64 = surface
        .triangles
        .iter()
        .map(|&t| {
            let [a, b, c] = surface.corners(t);
            a.distance(b) + b.distance(c) + c.distance(a)
        })
        .sum();
    let edge = lengths / (3 * surface.triangles.len()) as f64;
    let skin = Skin {
        depth,
        edge,
        layer,
        influences,
        counts,
        masses,
        soft,
        stiffness,
        damping: local.iter().map(|m| m.damping).collect(),
        friction: local.iter().map(|m| m.friction).collect(),
        body_from_rest: vec![Pose::IDENTITY; bodies],
        map,
        centres,
        bones: used,
        pairs,
        slots,
        proxies: prune::Proxies::default(),
        rest: surface.vertices,
        triangles: surface.triangles,
        colours: surface.colours,
    };
    let rests = holders.iter().zip(&bones).map(|(id, bone)| (*id, bone.rest, bone.core)).collect();
    Ok(Attached { skin, rests, carried })
}

fn outer_product(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

impl Attached {
    /// What the inner nodes add to a body that starts with its link at `start`: places in the world and masses.
    pub(crate) fn carried_by(&self, body: BodyId, start: Pose) -> impl Iterator<Item = (DVec3, f64)> {
        let bone = self.rests.iter().find(|(id, ..)| *id == body);
        let moved = bone.and_then(|(_, rest, _)| *rest).map(|rest| start.then(rest.inverse()));
        let is_bare = bone.is_some_and(|(_, _, core)| *core == Core::Bone);
        let own = self.carried.iter().filter(move |(b, _, _)| is_bare && *b == body.0);
        own.map(move |&(_, at, m)| (moved.map_or(at, |moved| moved.transform_point(at)), m))
    }

    /// What is left of the mass of a body, as a factor, when that of the skin's surface is taken off.
    pub(crate) fn core_share(&self, body: BodyId, mass: f64) -> f64 {
        if !self.rests.iter().any(|(id, _, core)| *id == body && *core == Core::Whole) {
            return 1.0;
        }
        let skin = &self.skin;
        let own = |a: usize| skin.influences[a].iter().filter(|i| i.body == body.0).map(|i| i.weight).sum::<f64>();
        let taken: f64 = (0..skin.nodes()).map(|a| skin.masses[a] * own(a)).sum();
        ((mass - taken) / mass).max(LEAST_CORE)
    }

    /// The skin of the model with these bodies.
    pub(crate) fn finish(self, bodies: &[Body], joined: &[(BodyId, BodyId)]) -> Skin {
        let Attached { mut skin, rests, .. } = self;
        for (pose, body) in skin.body_from_rest.iter_mut().zip(bodies) {
            *pose = body.start.inverse();
        }
        for (id, rest, _) in rests {
            if let Some(rest) = rest {
                let centre = Pose::at(bodies[id.index()].centre_in_link);
                skin.body_from_rest[id.index()] = rest.then(centre).inverse();
            }
        }
        skin.proxies = prune::Proxies::new(&skin, joined);
        skin
    }
}
