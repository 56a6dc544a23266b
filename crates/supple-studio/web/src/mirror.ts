// Which bone lies across from another, and what a change of one is on the other side: by where bones are at rest, whatever they are called.

import * as THREE from "three";
import type { SceneMessage } from "./protocol";

/** Two bones are across from one another when the mirrored place of one is so near to the other, in heights of the character. */
const NEAR = 0.03;

export interface BoneChange {
  range?: [number, number];
  swing?: [number, number];
  twist?: [number, number];
  width?: number;
  length?: number;
}

const placeOf = (scene: SceneMessage, body: number) => new THREE.Vector3(...scene.bodies[body]!.rest.position);
const mirrored = (v: THREE.Vector3, across: "x" | "z", middle = 0) => v.clone().setComponent(across === "x" ? 0 : 2, 2 * middle - v[across]);

/** The plane that the bones lie evenly on both sides of: across X or across Z. */
function plane(scene: SceneMessage): { across: "x" | "z"; middle: number } {
  const places = scene.bones.map((_, body) => placeOf(scene, body));
  const box = new THREE.Box3().setFromPoints(places);
  const planes = (["x", "z"] as const).map((across) => {
    const middle = 0.5 * (box.min[across] + box.max[across]);
    const apart = (place: THREE.Vector3) => Math.min(...places.map((other) => other.distanceTo(mirrored(place, across, middle))));
    // A plane that all bones lie in mirrors nothing.
    const flat = box.max[across] - box.min[across] < 0.05 * (box.max.y - box.min.y);
    return { across, middle, error: flat ? Infinity : places.reduce((sum, place) => sum + apart(place), 0) };
  });
  return planes[0]!.error <= planes[1]!.error ? planes[0]! : planes[1]!;
}

/** The bone across from one; null: it lies in the middle, or there is none. */
export function twinOf(scene: SceneMessage, body: number): number | null {
  if (body >= scene.bones.length) return null;
  const { across, middle } = plane(scene);
  const wanted = mirrored(placeOf(scene, body), across, middle);
  const height = new THREE.Box3().setFromPoints(scene.bones.map((_, k) => placeOf(scene, k))).getSize(new THREE.Vector3()).y;
  let [best, least] = [-1, NEAR * height];
  scene.bones.forEach((bone, k) => {
    const far = placeOf(scene, k).distanceTo(wanted);
    if (far < least && bone.joint === scene.bones[body]!.joint) [best, least] = [k, far];
  });
  return best < 0 || best === body ? null : best;
}

/** The same change on the other side: what turns one way there turns the other way, seen from the front. */
export function changeAcross(scene: SceneMessage, body: number, twin: number, change: BoneChange): BoneChange {
  const { across } = plane(scene);
  const other = { ...change };
  const turned = ([a, b]: [number, number]): [number, number] => [-b, -a];
  // A turn about a becomes one about the mirrored a, the other way round.
  if (change.range && axisOf(scene, twin).dot(mirrored(axisOf(scene, body), across)) > 0) other.range = turned(change.range);
  if (change.twist) other.twist = turned(change.twist);
  return other;
}

/** The axis of the joint that holds a body, in the world at rest. */
function axisOf(scene: SceneMessage, body: number): THREE.Vector3 {
  const joint = scene.joints.find(({ child }) => child === body)!;
  const axis = new THREE.Vector3().setComponent(joint.turning_axis ?? 0, 1);
  const turn = (rotation: [number, number, number, number]) => new THREE.Quaternion(...rotation);
  return axis.applyQuaternion(turn(joint.child_frame.rotation)).applyQuaternion(turn(scene.bodies[body]!.rest.rotation));
}

