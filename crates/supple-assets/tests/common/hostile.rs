//! One table of hostile files for every format and every way in: the readers, the command line and what is sent to the studio.

/// A hostile file.
pub(crate) struct Hostile {
    /// Its name, whose ending tells the format.
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// The code that refuses it when it lies in a folder; empty: it is taken, at a bounded cost.
    pub(crate) code: &'static str,
    /// The same when it was sent.
    pub(crate) sent: &'static str,
}

fn case(name: &'static str, bytes: impl Into<Vec<u8>>, code: &'static str) -> Hostile {
    Hostile { name, bytes: bytes.into(), code, sent: code }
}

fn gltf(rest: &str) -> String {
    format!(r#"{{"asset":{{"version":"2.0"}},{rest}}}"#)
}

fn mjcf(before: &str, body: &str) -> String {
    format!("<mujoco>{before}<worldbody><body name=\"a\"><joint/>{body}</body></worldbody></mujoco>")
}

const SPHERE: &str = "<geom size=\"0.1\"/>";

fn urdf(inner: &str) -> String {
    format!("<robot name=\"r\"><link name=\"a\">{BALL}</link>{inner}</robot>")
}

const BALL: &str = "<inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\"/></inertial><collision><geometry><sphere radius=\"0.1\"/></geometry></collision>";

fn bvh(joints: &str, frames: usize, values: &str) -> String {
    format!(
        "HIERARCHY\nROOT a\n{{\nOFFSET 0 0 0\nCHANNELS 3 Xposition Yposition Zposition\n{joints}}}\nMOTION\nFrames: {frames}\nFrame Time: 0.01\n{values}"
    )
}

/// The strip as a text FBX, and its compressed forms.
const FBX: &str = include_str!("../../../../fuzz/corpus/fbx/strip");
const DRACO: &[u8] = include_bytes!("../../../../fuzz/corpus/gltf/draco-list.glb");
const MESHOPT: &[u8] = include_bytes!("../../../../fuzz/corpus/gltf/meshopt-filter.glb");

fn fbx(from: &str, to: &str) -> String {
    assert!(FBX.contains(from), "{from}");
    FBX.replacen(from, to, 1)
}

/// Where the binary part of a .glb begins.
fn binary_of(glb: &[u8]) -> usize {
    28 + u32::from_le_bytes([glb[12], glb[13], glb[14], glb[15]]) as usize
}

/// A .glb whose binary part is zeros.
fn emptied(glb: &[u8]) -> Vec<u8> {
    let (mut bytes, start) = (glb.to_vec(), binary_of(glb));
    bytes[start..].fill(0);
    bytes
}

/// The Draco strip with the range of its places, 2 m, as 40,000 km.
fn far_draco() -> Vec<u8> {
    let (mut bytes, start) = (DRACO.to_vec(), binary_of(DRACO));
    let range = bytes[start..].windows(4).position(|w| w == 2f32.to_le_bytes()).expect("its range is there");
    bytes[start + range..][..4].copy_from_slice(&4e7f32.to_le_bytes());
    bytes
}

/// All of them.
pub(crate) fn table(small: &str) -> Vec<Hostile> {
    let with = |from: &str, to: &str| {
        assert!(small.contains(from), "{from}");
        small.replacen(from, to, 1)
    };
    let uri = |uri: &str| gltf(&format!(r#""buffers":[{{"uri":"{uri}","byteLength":4}}]"#));
    let nested = |n: usize| (0..n).map(|k| format!(r#"{{"children":[{}]}},"#, k + 1)).collect::<String>() + "{}";
    // Three thousand nodes show one mesh of twenty thousand vertices, which are zeros that take no byte.
    let more = (3..3003).map(|k| format!(",{k}")).collect::<String>();
    let instances = with(
        r#"{"bufferView":0,"componentType":5126,"count":10,"type":"VEC3","sparse":{"count":1,"#,
        r#"{"componentType":5126,"count":20000,"type":"VEC3","sparse":{"count":1,"#,
    )
    .replace(r#","JOINTS_0":2,"WEIGHTS_0":3"#, "")
    .replace(r#""children":[2]"#, &format!(r#""children":[2{more}]"#))
    .replace(r#""scale":[1,1,1]}]"#, &format!(r#""scale":[1,1,1]}}{}]"#, r#",{"mesh":0}"#.repeat(3000)));
    // A clip that takes the root 2000 km away and back: 0, 0, 0; 2e6, 0, 0; 0, 0, 0.
    let keys = "data:application/octet-stream;base64,AAAAAAAAAAAAAAAAACT0SQAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let far_clip = with(r#""channels":["#, r#""channels":[{"sampler":1,"target":{"node":1,"path":"translation"}},"#)
        .replacen(r#""interpolation":"LINEAR"}"#, r#""interpolation":"LINEAR"},{"input":5,"output":7}"#, 1)
        .replacen(r#"],"buffers":["#, r#",{"buffer":1,"byteOffset":0,"byteLength":36}],"buffers":["#, 1)
        .replacen(
            "],\n\"bufferViews\"",
            ",{\"bufferView\":9,\"componentType\":5126,\"count\":3,\"type\":\"VEC3\"}],\n\"bufferViews\"",
            1,
        );
    let far_clip = format!(r#"{},{{"byteLength":36,"uri":"{keys}"}}]}}"#, &far_clip[..far_clip.len() - 2]);
    let extended = |json: &str, told: &str| format!(r#"{},"extensions":{{{told}}}}}"#, &json[..json.len() - 1]);
    let human = |node: usize| {
        format!(r#""VRMC_vrm":{{"specVersion":"1.0","humanoid":{{"humanBones":{{"hips":{{"node":{node}}}}}}}}}"#)
    };
    let springs = |joints: &str| format!(r#""VRMC_springBone":{{"springs":[{{"joints":[{joints}]}}]}}"#);
    let far_collider = r#""VRMC_springBone":{"colliders":[{"node":1,"shape":{"sphere":{"offset":[0,3e6,0],"radius":1}}}],
        "colliderGroups":[{"colliders":[0]}],"springs":[{"joints":[{"node":1},{"node":2}],"colliderGroups":[0]}]}"#;
    let zeros = ["0"; 100_000].join(",");
    let unfolding = format!(
        r#""VRMC_springBone":{{"colliders":[{{"node":1,"shape":{{"sphere":{{"radius":0.1}}}}}}],"colliderGroups":[{{"colliders":[{zeros}]}}],
        "springs":[{{"joints":[{{"node":1}},{{"node":2}}],"colliderGroups":[{zeros}]}}]}}"#
    );
    let motion = r#""VRMC_vrm_animation":{"humanoid":{"humanBones":{"hips":{"node":1},"spine":{"node":2}}}}"#;
    let classes = (0..30_000).map(|k| format!("<default class=\"c{k}\"/>")).collect::<String>();
    let large = format!("<geom name=\"{}\"/>", "x".repeat(1 << 20));
    let points = (0..20_000).map(|k| format!("{} {} {} ", k % 27, k / 27 % 27, k / 729)).collect::<String>();
    let asset = format!("<asset><mesh name=\"m\" vertex=\"{points}\"/></asset>");
    let many = (0..30_000).map(|k| format!("a{k}=\"\" ")).collect::<String>();
    let laughs =
        "<!DOCTYPE a [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;\">]>";
    let chain = |n: usize| (0..n).map(|k| format!("<link name=\"l{k}\">{BALL}</link>")).collect::<String>();
    let joint = |parent: &str, child: &str, xyz: &str| {
        format!(
            "<joint name=\"j{parent}{child}\" type=\"continuous\"><parent link=\"{parent}\"/><child link=\"{child}\"/><origin xyz=\"{xyz}\"/></joint>"
        )
    };
    let still = "JOINT b\n{\nOFFSET 0 1 0\n}\n".repeat(9000);
    let outside = |name, bytes: String, code, sent| Hostile { name, bytes: bytes.into_bytes(), code, sent };
    vec![
        case("empty.glb", "", "file/json"),
        case("text.gltf", "this is no JSON", "file/json"),
        case("list.gltf", "[]", "file/version"),
        case("deep.gltf", "[".repeat(200_000), "file/json"),
        // What nobody reads is skipped, however deep.
        case(
            "deep-extras.gltf",
            gltf(&format!(r#""extras":{}{}"#, "[".repeat(5000), "]".repeat(5000))),
            "file/nothing",
        ),
        case("values.gltf", format!("[{}0]", "0,".repeat(1_600_000)), "file/size"),
        case("cut.glb", b"glTF\x02\0\0\0\xff\xff\xff\x7f".to_vec(), "file/container"),
        case("chunk.glb", b"glTF\x02\0\0\0\x14\0\0\0\xff\xff\xff\xffJSON".to_vec(), "file/container"),
        case("old.gltf", r#"{"asset":{"version":"1.0"}}"#, "file/version"),
        case("nothing.gltf", gltf(r#""nodes":[]"#), "file/nothing"),
        case("nodes.gltf", gltf(&format!(r#""nodes":[{}]"#, nested(5000))), "file/hierarchy"),
        case("circle.gltf", gltf(r#""nodes":[{"children":[1]},{"children":[0]}]"#), "file/hierarchy"),
        case("count.gltf", with(r#""count":10,"type":"VEC3""#, r#""count":4000000000,"type":"VEC3""#), "file/size"),
        case(
            "zeros.gltf",
            with(
                r#"{"bufferView":0,"componentType":5126,"count":10,"type":"VEC3""#,
                r#"{"componentType":5126,"count":10000000,"type":"VEC3""#,
            ),
            "file/size",
        ),
        case("instances.gltf", instances, "file/size"),
        case("far.gltf", with(r#""translation":[0,1,0]"#, r#""translation":[0,2e6,0]"#), "file/number"),
        case("infinite.gltf", with(r#""translation":[0,1,0]"#, r#""translation":[0,1e309,0]"#), "file/json"),
        case("far-clip.gltf", far_clip.clone(), "file/number"),
        case("far-draco.glb", far_draco(), "file/number"),
        case("zeros-draco.glb", emptied(DRACO), "file/compression"),
        case("zeros-meshopt.glb", emptied(MESHOPT), "file/compression"),
        case("cut-draco.glb", DRACO[..DRACO.len() - 100].to_vec(), "file/container"),
        case("text.vrm", "this is no JSON", "file/json"),
        case("far.vrm", with(r#""translation":[0,1,0]"#, r#""translation":[0,2e6,0]"#), "file/number"),
        case("bones.vrm", extended(small, &human(99_999)), "file/vrm"),
        case("springs.vrm", extended(small, &springs(r#"{"node":9999}"#)), "file/vrm"),
        case("many-springs.vrm", extended(small, &springs(&[r#"{"node":2}"#; 300_000].join(","))), "file/vrm"),
        // A hundred thousand times the same group of a hundred thousand times the same collider, by one spring.
        case("colliders.vrm", extended(small, &unfolding), "file/vrm"),
        case("far-collider.vrm", extended(small, far_collider), "file/number"),
        case("text.vrma", "this is no JSON", "file/json"),
        case("still.vrma", gltf(r#""nodes":[{}]"#), "file/clip"),
        case("far.vrma", extended(&far_clip, motion), "file/number"),
        case("text.fbx", "this is no FBX", "file/fbx"),
        case(
            "cut.fbx",
            b"Kaydara FBX Binary  \0\x1a\0\xe8\x1c\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f".to_vec(),
            "file/fbx",
        ),
        case("deep.fbx", "; FBX 7.4.0 project file\n".to_owned() + &"a: {\n".repeat(100_000), "file/fbx"),
        case("index.fbx", fbx("a: 0,1,-3", "a: 0,99999999,-3"), "file/fbx"),
        case("nan.fbx", fbx("\"A\",0,100,0", "\"A\",0,nan,0"), "file/number"),
        case("unit.fbx", fbx("\"Number\", \"\",1", "\"Number\", \"\",1e300"), "file/number"),
        case("far.fbx", fbx("a: -50,0,20", "a: -2e9,0,20"), "file/number"),
        // It stands as its skin was bound, and its clip begins 2000 km away.
        case("far-clip.fbx", fbx("\"A\",0,100,0", "\"A\",0,2e8,0"), "file/number"),
        outside("key.gltf", uri(".ssh/id_rsa"), "file/read", "file/outside"),
        outside("up.gltf", uri("../../../../../../etc/hostname"), "file/outside", "file/outside"),
        outside("device.gltf", uri("/dev/zero"), "file/outside", "file/outside"),
        case("scheme.gltf", uri("file:///etc/hostname"), "file/buffer"),
        case("base64.gltf", uri("data:application/octet-stream;base64,!!!!"), "file/buffer"),
        case("text.xml", "this is no XML", "file/xml"),
        case("deep.xml", "<a>".repeat(100_000) + &"</a>".repeat(100_000), "file/size"),
        case("laughs.xml", format!("{laughs}<mujoco model=\"&c;\"><worldbody/></mujoco>"), "file/xml"),
        case("attributes.xml", format!("<mujoco {many}><worldbody/></mujoco>"), "file/size"),
        case("classes.xml", mjcf(&format!("<default>{large}{classes}</default>"), SPHERE), "file/size"),
        case("meshes.xml", mjcf(&asset, &"<geom type=\"mesh\" mesh=\"m\"/>".repeat(2000)), ""),
        case("far.xml", mjcf("", SPHERE).replace("<body ", "<body pos=\"0 2e6 0\" "), "file/number"),
        case(
            "wall.xml",
            mjcf("", SPHERE).replace("</worldbody>", "<geom type=\"box\" size=\"2e6 1 1\"/></worldbody>"),
            "file/number",
        ),
        case("wide.xml", mjcf("", "<geom size=\"3e6\"/>"), "file/number"),
        case("nan.xml", mjcf("", "<geom size=\"nan\"/>"), "file/value"),
        case("mass.xml", mjcf("", "<geom size=\"0.1\" mass=\"-1\"/>"), "file/value"),
        outside("include.xml", mjcf("<include file=\"/etc/passwd\"/>", SPHERE), "file/outside", "file/outside"),
        outside("itself.xml", mjcf("<include file=\"itself.xml\"/>", SPHERE), "file/include", "file/outside"),
        case("fragment.xml", "<mujoco/>", "file/fragment"),
        case("text.urdf", "\u{0}\u{1}", "file/xml"),
        case("deep.urdf", "<robot>".repeat(100_000), "file/xml"),
        case("far.urdf", urdf(&(chain(1) + &joint("a", "l0", "0 0 2000000"))), "file/number"),
        case(
            "parents.urdf",
            urdf(&(chain(1) + &joint("a", "l0", "0 0 1") + &joint("a", "l0", "0 0 1"))),
            "file/structure",
        ),
        case(
            "circle.urdf",
            urdf(&(chain(2) + &joint("l0", "l1", "0 0 1") + &joint("l1", "l0", "0 0 1"))),
            "file/structure",
        ),
        case("nan.urdf", urdf(&(chain(1) + &joint("a", "l0", "0 nan 1"))), "file/value"),
        case("empty.urdf", "<robot name=\"r\"/>", "file/empty"),
        case("text.bvh", "HIERARCHY of nothing", "file/bvh"),
        case("cut.bvh", "HIERARCHY\nROOT a\n{\nOFFSET 0 0", "file/bvh"),
        case("frames.bvh", bvh("", 1_000_000_000, "0 0 0\n"), "file/bvh"),
        // Nine thousand joints without channels in every frame.
        case("still.bvh", bvh(&still, 20_000, &"0 0 0\n".repeat(20_000)), "file/size"),
        case("far.bvh", bvh("JOINT b\n{\nOFFSET 0 1 0\n}\n", 1, "0 0 2e6\n"), "file/number"),
        // It begins where it may, and leads away.
        case("far-frame.bvh", bvh("JOINT b\n{\nOFFSET 0 1 0\n}\n", 2, "0 0 0\n0 0 2e6\n"), "file/number"),
        case("time.bvh", bvh("", 1, "0 0 0\n").replace("Frame Time: 0.01", "Frame Time: 1e-300"), "file/bvh"),
        case("nan.bvh", bvh("", 1, "0 nan 0\n"), "file/bvh"),
        case("text.toml", "[character", "file/scene"),
        case("deep.toml", format!("a = {}", "[".repeat(100_000)), "file/scene"),
        case("dots.toml", "a.".repeat(100_000) + "a = 1", "file/scene"),
        case("unknown.toml", "[character]\nfile = \"a.glb\"\nallow_dir = \"/\"\n", "file/scene"),
        outside("device.toml", "[character]\nfile = \"/dev/zero.glb\"\n".into(), "file/outside", "file/outside"),
        outside("none.toml", "[character]\nfile = \"none.glb\"\n".into(), "file/read", "file/outside"),
        case("text.take", "this is no take", "take/format"),
        case("cut.take", b"SUPPLETK\x01\0\0\0".to_vec(), "take/version"),
    ]
}
