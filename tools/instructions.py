#!/usr/bin/env python3
"""Counts the instructions of a step of some scenes with valgrind, which counts the same on a busy machine and on an idle one.

    tools/instructions.py           compares with tools/instructions.txt; a change of more than 5 % either way fails
    tools/instructions.py write     writes that file anew: a deliberate commit, with its reason

A scene is run twice, for few steps and for more; what differs is that of the steps between. Other processors and compilers count otherwise: the file
names what it was counted with, and on anything else the comparison is told as skipped.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tools" / "instructions.txt"
ALLOWED = 0.05
# Scene, steps before, steps counted.
SCENES = [("hand", 20, 60), ("robot", 20, 60), ("chain:100", 20, 30), ("worm", 4, 6)]


def output(*words):
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)


def counted_with():
    """What a count depends on beside the code: compiler, processor's kind, the C library with its mathematics."""
    rustc = output("rustc", "--version").stdout.strip()
    flags = pathlib.Path("/proc/cpuinfo").read_text() if platform.system() == "Linux" else ""
    fused = "avx2 and fma" if re.search(r"\bavx2\b", flags) and re.search(r"\bfma\b", flags) else "baseline"
    return f"{rustc}, {platform.machine()} with {fused}, {' '.join(platform.libc_ver())}"


def instructions(program, scene, steps):
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, scene, str(steps)]
    told = output(*words).stderr
    return int(re.search(r"Collected : (\d+)", told).group(1))


def main():
    if shutil.which("valgrind") is None:
        print("no valgrind: instructions are NOT COUNTED (apt-get install valgrind)")
        return 0
    output("cargo", "build", "--release", "--workspace", "--example", "count")
    target = output("cargo", "metadata", "--format-version", "1", "--no-deps").stdout
    program = re.search(r'"target_directory":"([^"]+)"', target).group(1) + "/release/examples/count"
    rows = {}
    for scene, before, steps in SCENES:
        few, more = (instructions(program, scene, n) for n in (before, before + steps))
        rows[scene] = (more - few) // steps
        print(f"{scene:12} {rows[scene]:>10} instructions a step", flush=True)
    text = f"# Instructions of a step, by tools/instructions.py write. {counted_with()}\n"
    text += "".join(f"{scene:12} {count}\n" for scene, count in rows.items())
    if sys.argv[1:] == ["write"]:
        FILE.write_text(text)
        return 0
    kept = FILE.read_text().splitlines()
    if kept[0] != text.splitlines()[0]:
        print(f"the file was counted with another compiler, processor or library: NOT COMPARED\n  {kept[0]}")
        return 0
    last = {line.split()[0]: int(line.split()[1]) for line in kept[1:]}
    wrong = [
        f"{scene}: {rows[scene]} instead of {last.get(scene)}"
        for scene in rows
        if abs(rows[scene] / last.get(scene, 1) - 1) > ALLOWED
    ]
    if wrong:
        print("instructions of a step changed by more than 5 %; if that is meant, run tools/instructions.py write and say why:")
        print("\n".join("  " + line for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
