#!/usr/bin/env bash
# Does what docs/guide/extending.md says: adds its policies to a copy of the workspace, each as one file and one line,
# and takes them through the tests that every policy has to pass.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=target/extending
rm -rf "$copy"
mkdir -p "$copy"
cp -r Cargo.toml Cargo.lock clippy.toml rustfmt.toml crates stacks docs traces "$copy"
[ -d experiments ] && cp -r experiments "$copy"

# Prints the Nth block of the page that begins with a line.
block() { # line, N
  awk -v begin="$1" -v nth="$2" '$0 == begin {n++; on = n == nth; next} /^```$/ {on = 0} on' docs/guide/extending.md
}

# Adds the Nth policy of the page: its file, and its line in the enum of the module.
register() { # N, directory, file, variant, enum
  local module="$copy/crates/layer/src/$2"
  block '```rust' "$1" > "$module/$3.rs"
  block '```rust,ignore' "$1" > "$copy/line"
  grep -q "^$4,$" "$copy/line" && [ -s "$module/$3.rs" ]
  sed -i -e "0,/^mod /s//mod $3;\nmod /" -e "0,/^use /s//use $3::$4;\nuse /" "$module/mod.rs"
  sed -i "/^pub enum $5 {/r $copy/line" "$module/mod.rs"
}
register 1 flash/gc d_choices DChoices Gc
register 2 cache/policy random Random Policy

# A directory of its own: cargo takes the crates of the copy for those of the workspace, and would then build neither
# again when the other's sources change.
export CARGO_TARGET_DIR="$PWD/target/extending-build"
# Built and run once, so that optimization would take longer than it gains.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=false
cargo test --quiet --locked --manifest-path "$copy/Cargo.toml" -p frit-layer --lib -- \
  cache::policy flash:: hfsl::tests::each_policy hfsl::tests::policies hfsl::tests::reads_give_back_what_was_written hfsl::tests::nothing_is_lost_when_nand_fails
cargo clippy --quiet --locked --manifest-path "$copy/Cargo.toml" -p frit-layer --lib -- -D warnings
echo "docs/guide/extending.md: its policies build and pass"
