//! Time of one step, scene by scene. The scene's own script directs it, so the motion is the one people see.

use supple::*;

fn main() {
    divan::main();
}

const SCENES: [&str; 10] =
    ["pendulum", "hand", "robot", "plant", "strand", "chain:10", "chain:100", "chain:1000", "tree:127", "tree:1023"];

#[divan::bench(args = SCENES)]
fn step_of(bencher: divan::Bencher<'_, '_>, name: &str) {
    let scene = Scene::parse(name).expect(name);
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.solver = Solver::Tree(Tree { scheme: TreeScheme::Published, ..Tree::default() });
    bencher.counter(divan::counter::ItemsCount::new(scene.model.bodies().len())).bench_local(|| {
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).expect(name)
    });
}
