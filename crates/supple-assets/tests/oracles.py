"""Independent readings of robots: MuJoCo for MJCF, Pinocchio for URDF. Prints one JSON document.

    oracles.py mjcf FILE          masses, inertias, axes and poses at random positions
    oracles.py urdf FILE          the same by Pinocchio
    oracles.py swing FILE         a passive swing of one second by MuJoCo, in small steps
"""

import json
import sys

import numpy as np

SAMPLES = 5


def load(path):
    """The model, and what had to be taken out of the file for this version of MuJoCo to read it."""
    import re

    import mujoco

    try:
        return mujoco.MjModel.from_xml_path(path), []
    except ValueError as error:
        text, edits = open(path).read(), []
        if "'collision'" in str(error):  # an attribute of older versions
            text, edits = re.sub(r' collision="[a-z]*"', "", text), ["option/@collision"]
        elif "Lengthrange" in str(error):  # muscles: their search for lengths fails; masses and axes do not depend on it
            text, edits = re.sub(r"<actuator>.*</actuator>", "", text, flags=re.S), ["actuator"]
        else:
            raise
        return mujoco.MjModel.from_xml_string(text), edits


def kind(model, joint):
    """Of a joint, as a plain number: an enumerator of MuJoCo is not equal to a number of numpy."""
    return int(model.jnt_type[joint])


FREE, BALL, SLIDE, HINGE = range(4)


def random_turn(rng):
    turn = rng.normal(size=4)
    return turn / np.linalg.norm(turn)


def random_positions(model, rng):
    q = model.qpos0.copy()
    for j in range(model.njnt):
        at = model.jnt_qposadr[j]
        if kind(model, j) == FREE:
            q[at : at + 3] = rng.uniform(-1, 1, 3)
            q[at + 3 : at + 7] = random_turn(rng)
        elif kind(model, j) == BALL:
            q[at : at + 4] = random_turn(rng)
        else:
            q[at] = rng.uniform(-1.5, 1.5)
    assert model.nq == 0 or np.abs(q - model.qpos0).min() > 0, "a position was left where it was"
    return q


def mjcf(path):
    import mujoco

    t = mujoco.mjtJoint
    assert [int(k) for k in (t.mjJNT_FREE, t.mjJNT_BALL, t.mjJNT_SLIDE, t.mjJNT_HINGE)] == [FREE, BALL, SLIDE, HINGE]
    model, edits = load(path)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    bodies = []
    for b in range(1, model.nbody):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, model.body_iquat[b])
        turn = turn.reshape(3, 3)
        inertia = turn @ np.diag(model.body_inertia[b]) @ turn.T
        bodies.append(
            {
                "name": model.body(b).name,
                "mass": model.body_mass[b],
                "centre": model.body_ipos[b].tolist(),
                "inertia": inertia.flatten().tolist(),
            }
        )
    samples = []
    for _ in range(SAMPLES):
        data.qpos[:] = random_positions(model, rng)
        mujoco.mj_kinematics(model, data)
        samples.append(
            {
                "positions": data.qpos.tolist(),
                "poses": np.hstack([data.xpos[1:], data.xquat[1:]]).tolist(),
                "axes": data.xaxis.tolist(),
                "anchors": data.xanchor.tolist(),
            }
        )
    return {"bodies": bodies, "joints": [model.joint(j).name for j in range(model.njnt)], "samples": samples, "edits": edits}


def urdf(path):
    import pinocchio as pin

    model = pin.buildModelFromUrdf(path)
    data = model.createData()
    rng = np.random.default_rng(1)
    names = [model.names[j] for j in range(1, model.njoints)]
    bodies = []
    for j in range(1, model.njoints):
        inertia = model.inertias[j]
        bodies.append(
            {
                "name": model.names[j],
                "mass": inertia.mass,
                "centre": inertia.lever.tolist(),
                "inertia": inertia.inertia.flatten().tolist(),
            }
        )
    links = [f.name for f in model.frames if f.type == pin.FrameType.BODY]
    samples = []
    for _ in range(SAMPLES):
        positions = rng.uniform(-1.5, 1.5, len(names))
        q = pin.neutral(model)
        for value, j in zip(positions, range(1, model.njoints)):
            joint = model.joints[j]
            q[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else [np.cos(value), np.sin(value)]
        pin.framesForwardKinematics(model, data, q)
        pin.computeJointJacobians(model, data, q)
        poses, axes, anchors = [], [], []
        for name in links:
            place = data.oMf[model.getFrameId(name, pin.FrameType.BODY)]
            turn = pin.Quaternion(place.rotation)
            poses.append([*place.translation, turn.w, turn.x, turn.y, turn.z])
        for j in range(1, model.njoints):
            column = pin.getJointJacobian(model, data, j, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            column = column[:, model.joints[j].idx_v]
            axes.append((column[3:] if np.linalg.norm(column[3:]) > 0.5 else column[:3]).tolist())
            anchors.append(data.oMi[j].translation.tolist())
        samples.append({"positions": positions.tolist(), "poses": poses, "axes": axes, "anchors": anchors})
    return {"bodies": bodies, "links": links, "joints": names, "samples": samples}


def swing(path):
    import mujoco

    model, _ = load(path)
    # What Supple does not simulate, and what a passive swing is without.
    model.dof_armature[:] = 0
    model.dof_frictionloss[:] = 0
    model.tendon_stiffness[:] = 0
    model.tendon_damping[:] = 0
    model.opt.density = model.opt.viscosity = 0
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT) | int(off.mjDSBL_ACTUATION)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    # Where light links are damped strongly the longer step is unstable, and MuJoCo starts anew with a warning.
    for step in (1e-4, 1e-5):
        answer = swung(model, step)
        if answer is not None:
            return answer
    raise ValueError("MuJoCo's own swing is unstable")


def swung(model, step):
    import mujoco

    model.opt.timestep = step
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    single = [j for j in range(model.njnt) if kind(model, j) in (SLIDE, HINGE)]
    addresses = [model.jnt_qposadr[j] for j in single]
    data.qpos[addresses] += rng.uniform(-0.5, 0.5, len(single))
    start = data.qpos.copy()
    turns = [a for j, a in zip(single, addresses) if kind(model, j) == HINGE]
    farthest = 0.0
    for _ in range(100):
        mujoco.mj_step(model, data, round(0.01 / step))
        farthest = max(farthest, np.abs(data.qpos[turns] - start[turns]).max())
    if any(int(warning.number) for warning in data.warning) or abs(data.time - 1) > 1e-6:
        return None
    mujoco.mj_kinematics(model, data)
    return {
        "joints": {model.joint(j).name: start[a] for j, a in zip(single, addresses)},
        "poses": {model.body(b).name: [*data.xpos[b], *data.xquat[b]] for b in range(1, model.nbody)},
        "turned": farthest,
    }


if __name__ == "__main__":
    json.dump({"mjcf": mjcf, "urdf": urdf, "swing": swing}[sys.argv[1]](sys.argv[2]), sys.stdout)
