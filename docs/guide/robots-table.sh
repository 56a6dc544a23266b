#!/usr/bin/env bash
# The table of docs/guide/robots.md: every robot and recording among the models made by others, inspected and simulated for ten seconds.
#   SUPPLE_ASSETS=FOLDER bash docs/guide/robots-table.sh [SUPPLE]
set -euo pipefail
supple=$(realpath "${1:-target/release/supple}")
cd "$SUPPLE_ASSETS"
echo '| file | bodies | joints | notes | largest gap, m | contacts | finite | exit |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
find urdf mjcf bvh -name '*.urdf' -o -name '*.xml' -o -name '*.bvh' | sort | while read -r file; do
    status=0
    notes=$("$supple" inspect "$file" --json 2>/tmp/said.$$ | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["file"]["notes"]))' 2>/dev/null) || notes=
    run=$("$supple" --quiet simulate "$file" --seconds 10 --json 2>/tmp/said.$$) || status=$?
    if [ "$status" -ne 0 ]; then
        printf '| `%s` | refused: %s | | | | | | %s |\n' "$file" "$(head -n 1 /tmp/said.$$)" "$status"
    else
        printf '%s' "$run" | python3 -c 'import json,sys; r=json.load(sys.stdin); print("| `%s` | %d | %d | %s | %.1e | %d | %s | 0 |" % (sys.argv[1], r["bodies"], r["joints"], sys.argv[2], r["max_joint_gap"], r["contacts_max"], "yes" if r["finite"] else "NO"))' "$file" "$notes"
    fi
done
rm -f /tmp/said.$$
