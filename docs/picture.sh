#!/bin/sh
# Draws the picture of the README: a real session, used at a real terminal that
# lives in another one.
#
#     docs/picture.sh docs/session.svg
#
# `sessile` has to be in PATH.
set -eu
out=$(realpath "${1:?the file to write}")
place=$(mktemp -d)
trap 'cd /; SESSILE_SESSIONS_DIR=$place/s sessile end --all >/dev/null 2>&1; rm -rf "$place"' EXIT
cd "$place"
export SESSILE_SESSIONS_DIR="$place/s"
unset NO_COLOR

sessile start --name stage --cwd "$place" --env TERM=xterm-256color >/dev/null
sessile exec stage --pty --size 78x23 --timeout 0 --background -- \
    "PS1='\$ ' bash --norc --noprofile -i" >/dev/null
sessile screen stage 1 --wait-for '\$ $' >/dev/null

# Types a line, and waits until the next prompt is below what it prints.
type() {
    sessile keys stage 1 "$1<Enter>" --wait-for "$2" >/dev/null
    sessile screen stage 1 --wait-for '\$ $' --settle 200ms >/dev/null
}
type 'clear' '^\$ $'
type 'sessile start --name demo --cwd /tmp >demo.json' 'demo.json'
type "sessile exec demo -- 'x=41; greet() { echo \"hello from \$PWD\"; }'" 'PWD'
type "sessile exec demo -- 'greet; echo \$((x + 1))'" '42'
type "sessile exec demo -l python -- 'import math; r = 2; math.pi * r**2'" '12\.56'
type "sessile exec demo -l node -- 'const list = [1, 2, 3]; list.map(n => n * n)'" '\[ 1, 4, 9 \]'
type "sessile exec demo -- 'exit 3'" 'restarted'
type "sessile exec demo -- 'cd /usr; greet'" 'from /usr'
type 'sessile runs demo' 'cd /usr; greet$'
sessile screen stage 1 --format svg >"$out"
