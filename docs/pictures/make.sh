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

# Film strips of the built-in takes, with the marks of the hand.
strip() { draw "$1:take=$2" -o "../guide/pictures/$1-$2.png" --strip "$3" --from 0 --to "$4" --size "$5" --camera 8,8; }
strip worm jump 6 0.5 1600x260
strip worm jump2 6 1.1 1600x260
strip worm warped 6 0.5 1600x260
strip worm wave 6 1.5 1600x260
strip worm bend 6 1.5 1600x260
strip worm limp 6 2.4 1600x260
strip worm roll 6 4 1600x260
strip fish escape 6 0.5 1600x260
strip fish turnover 6 7.4 1600x260
strip finger push 6 1.2 1600x260
