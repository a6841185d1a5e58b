#!/bin/bash
# Measures the build from a clean clone: `make demo`, `make test`, and an edit of crate layer until its tests have
# passed. Prints a table of times and sizes. The machine should have no other work.
#
#   scripts/build-times.sh                  the whole, about half an hour
#   scripts/build-times.sh demo edit        some of demo, test, edit
#   KEEP=1 scripts/build-times.sh demo      keeps the clone, and prints its path
set -euo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(demo test edit)
for part in "${parts[@]}"; do
  case $part in demo | test | edit) ;; *) echo "build-times: no part '$part'; there are demo, test, edit" >&2; exit 2 ;; esac
done

clone=$(mktemp -d "${TMPDIR:-/tmp}/frit-build-times.XXXXXX")
[ -n "${KEEP:-}" ] || trap 'rm -rf "$clone"' EXIT
git clone -q --no-hardlinks . "$clone/frit"
# Recordings beside the tree are used by the tests where they exist.
if [ -e ../shared ]; then ln -s "$(realpath ../shared)" "$clone/shared"; fi
cd "$clone/frit"

# timed NAME COMMAND...: runs a command and prints its time. A failure prints the end of its output.
timed() {
  local name=$1 begin=$SECONDS
  shift
  if ! "$@" >"$clone/log" 2>&1; then
    tail -n 30 "$clone/log" >&2
    echo "build-times: $name failed" >&2
    exit 1
  fi
  local took=$((SECONDS - begin))
  printf '%-44s %3d min %02d s\n' "$name" $((took / 60)) $((took % 60))
}

# size NAME PATH
size() {
  printf '%-44s %10s\n' "$1" "$(du -sh --apparent-size "$2" | cut -f1)"
}

echo "$(nproc) processors, $(rustc --version)"
for part in "${parts[@]}"; do
  case $part in
    demo)
      timed 'make demo, from nothing' make demo
      size 'program' target/release/frit
      ;;
    test) timed 'make test' make test ;;
    edit)
      timed 'tests of frit-layer, first time' cargo test --locked -p frit-layer
      echo '// An edit.' >>crates/layer/src/hfsl/mod.rs
      timed 'tests of frit-layer, after an edit' cargo test --locked -p frit-layer
      ;;
  esac
done
size 'target' target
[ -z "${KEEP:-}" ] || echo "the clone: $clone/frit"
