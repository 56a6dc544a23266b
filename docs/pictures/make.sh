#!/usr/bin/env bash
# Draws the pictures of README and guide again. SUPPLE names the binary; without it the release build is made and used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if [ -z "${SUPPLE:-}" ]; then
    cargo build --release --bin supple
    SUPPLE=${CARGO_TARGET_DIR:-../../target}/release/supple
fi

draw() { "$SUPPLE" --quiet render "$@" >/dev/null; }

draw hand -o hand.png --size 560x560 --at 1.15 --camera 118,30
draw robot -o robot.png --size 560x560 --at 2 --camera 32,14
draw tree:127 -o tree.png --size 560x560 --at 1 --camera 25,24
draw hand -o grasp.png --strip 6 --from 0.5 --to 3.5 --size 1600x290 --camera 118,26
draw robot -o bones.png --size 560x560 --at 2 --camera 32,14 --layers shapes,bones,joints
