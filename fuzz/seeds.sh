#!/bin/bash
# Puts what a target starts from into its corpus: fuzz/seeds.sh TARGET DIRECTORY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
target=$1 to=$2
case $target in
  toml) cp "$root"/stacks/*.toml "$to" ;;
  media)
    cp "$root"/crates/media/profiles/*.toml "$root"/crates/media/profiles/disk/*.toml "$to"
    # The drive of the parser's tests.
    sed -n '/^const DRIVE: &str = "$/,/^";$/{//!p}' "$root"/crates/media/src/disk/diskspecs/tests.rs >"$to/small.diskspecs"
    ;;
  trace)
    for f in "$root"/crates/trace/tests/all/samples/*; do
      # The first byte, 15, lets the format be told from the content.
      case $f in *.rs) ;; *) { printf '\017'; head -c 4096 "$f"; } >"$to/$(basename "$f")" ;; esac
    done
    printf '\000time_us,op,sector,sectors,flags\n1,W,8,16,F\n2.5,R,0,8,\n3,F,0,0,\n4,D,8,8,P\n' >"$to/recorded"
    ;;
  isp)
    # The instructions of the reference; the first byte is the length of the pieces.
    sed -n 's/^\({".*}\)$/\1/p' "$root"/docs/reference/isp.md | while read -r line; do
      printf '\377%s\n' "$line" >"$to/$(printf '%s' "$line" | cksum | cut -d' ' -f1)"
    done
    printf '\377fritISP1\000\020\000\000\001\000' >"$to/binary"
    ;;
  volume)
    for f in "$root"/crates/volume/tests/fixtures/*.tar.zst; do
      { printf '\001'; tar -I zstd -xOf "$f" --wildcards 'clean/frit.volume' | head -c 4096; } >"$to/$(basename "$f")" || true
    done
    ;;
esac
