#!/usr/bin/env bash
# Runs all tests in rounds: each round in another order, with fresh seeds or with the fixed ones of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
Usage: scripts/explore.sh [--rounds N] [--minutes M] [--fixed] [--seed S] [-- -p PACKAGE ...]

Runs the tests of the workspace in rounds, each in another order. The seed of a round is printed before it begins, and
again with the command that repeats it when a test fails. Output of a failed round stays in out/explore/.

  --rounds N   stop after N rounds (default: 1, or no limit with --minutes)
  --minutes M  begin no round after M minutes
  --fixed      draw the cases that `make test` draws: only the order of tests changes
  --seed S     seed of the first round; later rounds count on from it (default: drawn from the system)

Examples:
  scripts/explore.sh --minutes 60                    # an hour of cases that no run has tried before
  scripts/explore.sh --rounds 10 --fixed             # ten runs of `make test`'s cases, each in another order
  scripts/explore.sh --seed 4711 -- -p frit-layer    # repeats a round for one crate
TEXT
}

rounds='' minutes='' fixed=false seed=''
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds) rounds=${2:?--rounds needs a number}; shift 2 ;;
    --minutes) minutes=${2:?--minutes needs a number}; shift 2 ;;
    --seed) seed=${2:?--seed needs a number}; shift 2 ;;
    --fixed) fixed=true; shift ;;
    --help | -h) usage; exit 0 ;;
    --) shift; break ;;
    *) echo "explore: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
done
for number in "$rounds" "$minutes" "$seed"; do
  [[ $number =~ ^[0-9]{0,18}$ ]] || { echo "explore: '$number' is no number" >&2; exit 2; }
done
[ -n "$rounds" ] || { [ -n "$minutes" ] && rounds=1000000 || rounds=1; }
seed=${seed:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(--workspace)

# The test harness takes the order of tests on a stable toolchain only with this variable. It must not reach the
# compiler, which would build everything again.
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=env RUSTC_BOOTSTRAP=1"

mkdir -p out/explore
failed=0
for ((round = 0; round < rounds; round++)); do
  if [ -n "$minutes" ] && [ "$SECONDS" -ge $((minutes * 60)) ] && [ "$round" -gt 0 ]; then break; fi
  now=$((seed + round))
  if ! $fixed; then
    export PROPTEST_RNG_SEED=$now SHUTTLE_RANDOM_SEED=$now SEED=$now LONG=1 SCRIBBLE_SECONDS=60
  fi
  log=out/explore/$now.log
  echo "round $((round + 1)): seed $now"
  if cargo test --locked --no-fail-fast "${packages[@]}" --lib --bins --tests --examples -- \
    -Z unstable-options --shuffle-seed "$now" >"$log" 2>&1; then
    rm "$log"
    continue
  fi
  failed=$((failed + 1))
  grep -E '^(test .* FAILED|error: test failed|error)' "$log" | sort -u || true
  option=$($fixed && echo ' --fixed' || true)
  echo "  failed: see $log; repeat with: scripts/explore.sh --seed $now$option -- ${packages[*]}"
done
echo "$round rounds, $failed failed"
[ "$failed" = 0 ]
