#!/usr/bin/env bash
# Coverage-guided fuzzing of every reader: fuzz/run.sh [SECONDS] [TARGET...]. SECONDS are of processor time for each target, where /proc counts it; by the
# clock at most ten times that. Two targets run at a time; what breaks one stays in a file that is named.
# The compiler counts coverage by itself and libFuzzer is built from its crate: a C++ compiler is needed, neither cargo-fuzz nor a nightly toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${1:-600}
[ $# -eq 0 ] || shift
targets=("$@")
[ $# -gt 0 ] || targets=(gltf fbx urdf mjcf bvh scene take mesh)

# Few inputs are tried in a short run: there the time of the build counts, not that of the code. It tries the same ones each time, so that a change is
# not blamed for what it did not do; long runs try others.
profile=release seed=0
[ "$seconds" -ge 120 ] || profile=quick seed=1

# The target of scenes writes each of its inputs to a file: in memory where there is such a folder.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm

ticks=$(getconf CLK_TCK)
longest=$((10 * seconds))
[ -r /proc/self/stat ] || longest=$seconds

build=$(cd .. && mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
# With a target named, what runs while building is compiled without these.
RUSTFLAGS="$coverage" cargo build --quiet --profile "$profile" --bin any --target "$host" --target-dir "$build"
program=$build/$host/$profile/any

# A program's own time so far [s]: the fields after its name, which may hold blanks.
processor_seconds() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    read -ra stat <<<"${stat##*) }"
    echo $(((stat[11] + stat[12]) / ticks))
}

fuzz() {
    local target=$1 corpus=$build/corpus/$1 found=$build/found/$1 log=$build/$1.log
    rm -rf "$found"
    mkdir -p "$corpus" "$found"
    cp "corpus/$target/"* "$corpus/"
    # A busy machine stops a program for many seconds: only what takes minutes is taken for endless.
    SUPPLE_FUZZ=$target "$program" "$corpus" -seed="$seed" -max_total_time="$longest" -timeout=200 -rss_limit_mb=4096 \
        -artifact_prefix="$found/" -print_final_stats=1 >"$log" 2>&1 &
    local pid=$! spent=0
    while kill -0 "$pid" 2>/dev/null; do
        spent=$(processor_seconds "$pid" || echo "$spent")
        [ "$spent" -lt "$seconds" ] || kill -USR1 "$pid" 2>/dev/null || true # it ends, and says what it did
        sleep 0.5
    done
    if wait "$pid"; then
        printf '%s: %s inputs in %s s of processor time, none broke it\n' "$target" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$spent"
    else
        printf '%s: BROKEN by %s\n' "$target" "$(ls "$found"/* 2>/dev/null || echo 'something that is told here')"
        grep -vE '^#[0-9]' "$log" | tail -n 30
        return 1
    fi
}

status=0
while [ ${#targets[@]} -gt 0 ]; do
    running=()
    for target in "${targets[@]:0:2}"; do
        fuzz "$target" &
        running+=($!)
    done
    for pid in "${running[@]}"; do
        wait "$pid" || status=1
    done
    targets=("${targets[@]:2}")
done
exit $status
