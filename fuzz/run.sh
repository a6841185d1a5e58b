#!/bin/bash
# Runs a fuzz target for so many seconds, or on one file: fuzz/run.sh TARGET|all SECONDS|FILE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${1:?usage: fuzz/run.sh TARGET|all SECONDS|FILE}
what=${2:-60}
if [ "$target" = all ]; then
  for t in nbd hints volume toml media trace fs isp program; do "$0" $t "$what"; done
  exit
fi

host=$(rustc -vV | sed -n 's/^host: //p')
# What cargo-fuzz passes, but for the sanitizer of addresses: nothing here is unsafe but what it depends on.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="${RUSTFLAGS:-} --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}"
cargo build --quiet --release --manifest-path "$here/Cargo.toml" --target "$host" --bin "$target"
program="$CARGO_TARGET_DIR/$host/release/$target"

mkdir -p "$here/corpus/$target" "$here/artifacts/$target"
"$here/seeds.sh" "$target" "$here/corpus/$target"
export FRIT_SEEDS="$here/corpus/$target"
args=(-artifact_prefix="$here/artifacts/$target/" -rss_limit_mb=2048 -timeout=10)
if [ -f "$what" ]; then exec "$program" "${args[@]}" "$what"; fi
# Requests of an NBD client are large where they find no memory.
longest=65536
if [ "$target" = nbd ]; then longest=2097152; fi
exec "$program" "${args[@]}" -max_total_time="$what" -max_len=$longest -print_final_stats=1 "$here/corpus/$target"
