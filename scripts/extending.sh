#!/usr/bin/env bash
# Does what docs/guide/extending.md says: adds its policy to a copy of the workspace as one file and one line, and
# takes it through the tests that every policy has to pass.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=target/extending
rm -rf "$copy"
mkdir -p "$copy"
cp -r Cargo.toml Cargo.lock clippy.toml rustfmt.toml crates stacks docs traces "$copy"
[ -d experiments ] && cp -r experiments "$copy"

gc="$copy/crates/layer/src/flash/gc"
# The file: the first Rust block of the page.
awk '/^```rust$/ {on = 1; next} /^```$/ {if (on) exit} on' docs/guide/extending.md > "$gc/d_choices.rs"
# The line: the block marked "ignore", before the end of the enum.
awk '/^```rust,ignore$/ {on = 1; next} /^```$/ {if (on) exit} on' docs/guide/extending.md > "$copy/line"
grep -q DChoices "$copy/line"
sed -i -e 's/^mod fifo;/mod d_choices;\nmod fifo;/' -e 's/^use fifo::Fifo;/use d_choices::DChoices;\nuse fifo::Fifo;/' "$gc/mod.rs"
sed -i "/^pub enum Gc {/r $copy/line" "$gc/mod.rs"

# A directory of its own: cargo takes the crates of the copy for those of the workspace, and would then build neither
# again when the other's sources change.
export CARGO_TARGET_DIR="$PWD/target/extending-build"
# Built and run once, so that optimization would take longer than it gains.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=false
cargo test --quiet --locked --manifest-path "$copy/Cargo.toml" -p frit-layer --lib -- \
  flash:: hfsl::tests::policies hfsl::tests::reads_give_back_what_was_written hfsl::tests::nothing_is_lost_when_nand_fails
cargo clippy --quiet --locked --manifest-path "$copy/Cargo.toml" -p frit-layer --lib -- -D warnings
echo "docs/guide/extending.md: its policy builds and passes"
