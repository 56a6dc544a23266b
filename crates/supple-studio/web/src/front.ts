// Which way a character looks, so that it is first seen from there.

import * as THREE from "three";
import { matrixOf } from "./figure";
import type { SceneMessage } from "./protocol";

const UP = new THREE.Vector3(0, 1, 0);

/** Level and of length 1. What its bones tell: left and right, where feet point, and of what goes on all fours where its head is; +Z, as glTF has it, when they
 * tell nothing. */
export function frontOf(message: SceneMessage): THREE.Vector3 {
  const front = new THREE.Vector3(0, 0, 0.3);
  const add = (way: THREE.Vector3, counts: number) => {
    way.y = 0;
    if (way.length() > 1e-9) front.addScaledVector(way.normalize(), counts);
  };
  const places = message.bodies.map(({ rest }) => new THREE.Vector3(...rest.position));
  const across = new THREE.Vector3();
  message.bodies.forEach(({ name }, k) => {
    const side = sideOf(name);
    if (side === 0) return;
    const other = twinOf(name);
    const twin = message.bodies.findIndex((body) => body.name === other);
    if (twin >= 0) across.addScaledVector(places[k]!.clone().sub(places[twin]!), side);
  });
  add(across.cross(UP), 2); // its left × up

  const feet = new THREE.Vector3();
  const ends: Record<string, THREE.Vector3[]> = { pelvis: [], head: [] };
  message.bones.forEach((bone, k) => {
    ends[bone.class]?.push(places[k]!);
    const joint = message.joints.find(({ child }) => child === k);
    if (bone.class !== "foot" || !joint) return;
    const ankle = new THREE.Vector3(...joint.child_frame.position).applyMatrix4(matrixOf(message.bodies[k]!.rest));
    feet.add(places[k]!.clone().sub(ankle).setY(0));
  });
  add(feet, 1);
  const [tail, head] = [ends.pelvis![0], ends.head![0]];
  if (tail && head) {
    const spine = head.clone().sub(tail);
    if (Math.hypot(spine.x, spine.z) > Math.abs(spine.y)) add(spine, 1);
  }
  return front.normalize();
}

/** 1 for what is on the left, by its name, -1 for the right. */
function sideOf(name: string): number {
  const words = wordsOf(name);
  const left = words.some((word) => word === "l" || word.startsWith("left"));
  const right = words.some((word) => word === "r" || word.startsWith("right"));
  return Number(left) - Number(right);
}

function wordsOf(name: string): string[] {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z]+/);
}

/** The name of the same part on the other side. */
function twinOf(name: string): string {
  const others: Record<string, string> = { l: "r", r: "l", left: "right", right: "left" };
  const turned = (text: string) => {
    const other = others[text.toLowerCase()]!;
    const all = text === text.toUpperCase() && text.length > 0;
    return all ? other.toUpperCase() : /^[A-Z]/.test(text) ? other[0]!.toUpperCase() + other.slice(1) : other;
  };
  return name.replace(/left|right|(?<![a-z])[lr](?![a-z])/gi, turned);
}
