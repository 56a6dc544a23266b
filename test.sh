#!/usr/bin/env bash
# All that a change must pass: form, lints, tests, documents, and the built binary. Runs from any folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf '\n== %s\n' "$*"; }

assets=${SUPPLE_ASSETS:-../shared/assets}
if [ -d "$assets" ]; then
    SUPPLE_ASSETS=$(cd "$assets" && pwd)
    export SUPPLE_ASSETS
    say "models made by others: found, tests that read them run"
elif [ -n "${SUPPLE_REQUIRE_ASSETS:-}" ]; then
    say "models made by others: NOT FOUND at $assets, and SUPPLE_REQUIRE_ASSETS is set: give SUPPLE_ASSETS"
    exit 1
else
    say "models made by others: not found at $assets, tests that read them are SKIPPED (set SUPPLE_ASSETS)"
fi

say "form"
if grep -nE '@[A-Z0-9]+@' ./*.md docs/*.md docs/guide/*.md; then
    echo "a figure was left out"
    exit 1
fi
cargo fmt --all --check

# cargo-deny is built beside the lints: a minute and a half of processor time without optimisation.
if ! command -v cargo-deny >/dev/null; then
    (cargo install --locked --debug --quiet cargo-deny >/dev/null 2>&1 || true) &
    builder=$!
fi

say "lints"
cargo clippy --workspace --all-targets --release -- -D warnings

say "dependencies"
[ -z "${builder:-}" ] || wait "$builder"
if command -v cargo-deny >/dev/null; then
    cargo deny --all-features --log-level error check licenses bans sources
    if cargo deny fetch db >/dev/null 2>&1; then
        cargo deny --all-features check advisories
    else
        say "advisories: the database cannot be reached from here: NOT CHECKED"
    fi
else
    python3 tools/dependencies.py
    say "cargo-deny cannot be installed here: licences by tools/dependencies.py, advisories NOT CHECKED"
fi

# MuJoCo and Pinocchio read the same robots: tests/agree.rs compares.
oracles=${CARGO_TARGET_DIR:-target}/oracles
if [ -d "$assets" ] && ! "$oracles/bin/python" -c 'import mujoco, pinocchio' 2>/dev/null; then
    python3 -m venv "$oracles" 2>/dev/null && "$oracles/bin/pip" install --quiet mujoco pin numpy 2>/dev/null || rm -rf "$oracles"
fi
if [ -x "$oracles/bin/python" ]; then
    say "independent readings of robots: $("$oracles/bin/pip" list 2>/dev/null | grep -E '^(mujoco|pin) ' | tr -s ' ' | paste -sd, -)"
else
    say "independent readings of robots: no MuJoCo and Pinocchio (no Python, or no network): tests that compare with them are SKIPPED"
fi

# USD's own library reads what is written as .usda: tests/formats.rs.
if [ -x "$oracles/bin/python" ]; then
    "$oracles/bin/python" -c 'from pxr import Usd' 2>/dev/null || "$oracles/bin/pip" install --quiet usd-core 2>/dev/null || true
fi
if "$oracles/bin/python" -c 'from pxr import Usd' 2>/dev/null; then
    SUPPLE_USD_PYTHON=$(realpath -s "$oracles/bin/python")
    export SUPPLE_USD_PYTHON
else
    say "USD: no usd-core: the test of .usda files is SKIPPED"
fi

say "tests"
cargo test --workspace --release --no-fail-fast

# A few seconds of each: what was found in longer runs is in the corpus, which the tests have done again.
say "fuzzing"
if ! command -v c++ >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq g++ >/dev/null || true
fi
if command -v c++ >/dev/null; then
    bash fuzz/run.sh "${SUPPLE_FUZZ_SECONDS:-10}"
elif [ -n "${SUPPLE_REQUIRE_ASSETS:-}" ]; then
    say "no C++ compiler: coverage-guided fuzzing cannot run; install g++"
    exit 1
else
    say "no C++ compiler: coverage-guided fuzzing is SKIPPED (install g++)"
fi

say "instructions of a step"
if ! command -v valgrind >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq valgrind >/dev/null || true
fi
python3 tools/instructions.py

say "the page"
if command -v npm >/dev/null; then
    page=crates/supple-studio/web
    [ -d "$page/node_modules/gltf-validator" ] || (cd "$page" && npm ci --no-audit --no-fund)
    (cd "$page" && npm run --silent check)
    if ! command -v chromium >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
    fi
    if command -v chromium >/dev/null; then
        cargo build --release --bin supple
        (cd "$page" && npm test)
    elif [ -n "${SUPPLE_REQUIRE_ASSETS:-}" ]; then
        say "no chromium: the tests of the page cannot run; install chromium"
        exit 1
    else
        say "no chromium: the tests of the page are SKIPPED (install chromium)"
    fi
else
    say "no npm: the page is a placeholder and its tests are SKIPPED (install Node.js)"
fi

say "documents"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --release

say "the binary"
cargo build --release --bin supple
supple=${CARGO_TARGET_DIR:-target}/release/supple
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Runs a call that must end with this status; what it said is kept in $folder/said.
ends_with() {
    local wanted=$1 status=0
    shift
    "$supple" "$@" >"$folder/printed" 2>"$folder/said" || status=$?
    if [ "$status" -ne "$wanted" ]; then
        printf 'supple %s: status %s, not %s\n' "$*" "$status" "$wanted"
        cat "$folder/said"
        exit 1
    fi
    printf 'supple %s\n' "$*"
}
# What the last call printed or said must contain this.
tells() {
    grep -qF -- "$1" "$folder/printed" "$folder/said" || { printf 'it does not tell: %s\n' "$1"; cat "$folder"/{printed,said}; exit 1; }
}

ends_with 0 --version
ends_with 0 scenes
tells pendulum
ends_with 0 inspect hand
ends_with 0 simulate pendulum --seconds 1 --json -o "$folder/run.csv" -o "$folder/run.json"
tells '"state_hash"'
bodies=$(sed -n 's/^ *"bodies": \([0-9]*\),$/\1/p' "$folder/run.json")
[ "$(wc -l <"$folder/run.csv")" -eq $((1 + 61 * bodies)) ] || { echo "run.csv has not a head and 61 rows a body"; exit 1; }
ends_with 0 simulate chain:100 --seconds 1 --set stiffness_scale=2 --set torques=on
ends_with 0 simulate hand --seconds 1 --dt 1/120
ends_with 0 render hand -o "$folder/hand.png" --size 320x180 --json
tells '"frames": 1'
ends_with 0 render chain:10 -o "$folder/chain.gif" --size 160x90 --seconds 0.5
tells '13 frames'
ends_with 0 bench chain --links 10,100 --seconds 0.2 --json -o "$folder/chain.svg"
tells '"slope"'
grep -q '<svg' "$folder/chain.svg"
ends_with 0 bench hand --seconds 1
ends_with 0 bench whip --quick --json
tells '"factorisations_mean"'
ends_with 2 simulate pendulm
tells scene/unknown
ends_with 2 simulate pendulum --set color=red
tells cli/setting
ends_with 2 simulate pendulum -o "$folder/none/run.csv"
tells cli/output
"$supple" --quiet scenes | head -n 1 >/dev/null

say "all passed"
