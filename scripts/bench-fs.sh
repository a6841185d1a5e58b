#!/bin/bash
# The file system beside EXT4 without journal on a RAM disk (a loop device on tmpfs), both in one run: five
# patterns of IOzone on one file, of which the first writes a new one, and operations on names. The library is measured in the process of the benchmark; `frit mount`
# of an image and of a pool (on the same tmpfs), and EXT4, through the kernel; a second mount of an image (`direct`) with
# the benchmark under `frit exec`. Four regimes: warm; durable (fsync is
# part of the time); shared maps in place of read and write; a memory cgroup that leaves a cache smaller than the file.
#
#   scripts/bench-fs.sh                           as root, about ten minutes; make bench runs it
#   MIB=256 RECORDS=1,4,64,1024,16384 NAMES=1000000 scripts/bench-fs.sh
#   PATTERNS=write REGIMES=warm scripts/bench-fs.sh
#   FRIT=/path/to/frit RECORDS_BENCH=/path NAMES_BENCH=/path scripts/bench-fs.sh    with programs that are built
#
# Only the ratios count; see docs/results/speed.md.
set -euo pipefail
cd "$(dirname "$0")/.."

FRIT=${FRIT:-target/release/frit}
MIB=${MIB:-256}
RECORDS=${RECORDS:-1,4,16,64,256,1024,4096,16384}
NAMES=${NAMES:-1000000}
# Patterns, separated by commas; empty: all.
PATTERNS=${PATTERNS:-}
REGIMES=${REGIMES:-warm durable mmap limited names}
# What the limited regime leaves for everything, in MiB: five eighths of the file, as 160 of 256.
LIMIT=${LIMIT:-$((MIB * 5 / 8))}

[ "$(id -u)" = 0 ] || { echo "bench-fs: skipped, it needs root for loop devices and mounts" >&2; exit 0; }
for tool in mkfs.ext4 losetup fusermount3; do
  command -v "$tool" >/dev/null || { echo "bench-fs: skipped, no $tool on this machine" >&2; exit 0; }
done
[ -e /dev/loop-control ] || { echo "bench-fs: skipped, no loop devices" >&2; exit 0; }
[ -x "$FRIT" ] || { echo "bench-fs: no $FRIT; run 'make build'" >&2; exit 1; }

# built BENCH: the path of a benchmark, built if it is not.
built() {
  cargo bench --profile dist --locked -q -p frit-fs --bench "$1" --no-run --message-format json 2>/dev/null |
    python3 -c 'import json, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("executable") and made["target"]["name"] == sys.argv[1]: print(made["executable"])' "$1"
}
RECORDS_BENCH=${RECORDS_BENCH:-$(built records)}
NAMES_BENCH=${NAMES_BENCH:-$(built names)}

dir=$(mktemp -d /tmp/frit-bench-fs.XXXXXX)
group=/sys/fs/cgroup/memory/frit-bench-$$
stop() {
  fusermount3 -u -z "$dir/frit-mount" 2>/dev/null || true
  fusermount3 -u -z "$dir/direct" 2>/dev/null || true
  fusermount3 -u -z "$dir/pool" 2>/dev/null || true
  umount "$dir/ext4" 2>/dev/null || true
  for _ in 1 2 3 4 5; do umount "$dir/ram" 2>/dev/null && break; sleep 0.5; done
  rmdir "$group" 2>/dev/null || true
  rm -rf "$dir"
}
trap stop EXIT
mkdir "$dir/ram" "$dir/ext4" "$dir/frit-mount" "$dir/direct" "$dir/pool"
mount -t tmpfs -o size=80%,huge=always none "$dir/ram"

# fresh MIB INODES: an empty EXT4, an empty image for the library, one that is mounted, and a pool.
fresh() {
  fusermount3 -u "$dir/frit-mount" 2>/dev/null || true
  fusermount3 -u "$dir/direct" 2>/dev/null || true
  fusermount3 -u "$dir/pool" 2>/dev/null || true
  umount "$dir/ext4" 2>/dev/null || true
  rm -rf "$dir"/ram/*
  fallocate -l "$1M" "$dir/ram/ext4.img"
  # Blocks of 4 KiB, as on any larger disk: small ones would get 1 KiB, and be slow.
  mkfs.ext4 -q -F -b 4096 -O ^has_journal -N "$2" "$dir/ram/ext4.img"
  mount -o loop "$dir/ram/ext4.img" "$dir/ext4"
  fallocate -l "$1M" "$dir/ram/library.img"
  "$FRIT" mkfs "$dir/ram/mount.img" --size "$1M" --inodes "$2" >/dev/null
  "$FRIT" mount "$dir/ram/mount.img" "$dir/frit-mount" >/dev/null
  "$FRIT" mkfs "$dir/ram/direct.img" --size "$1M" --inodes "$2" >/dev/null
  "$FRIT" mount "$dir/ram/direct.img" "$dir/direct" >/dev/null
  "$FRIT" mkfs --pool "$dir/ram/pool" --inodes "$2" >/dev/null
  "$FRIT" mount "$dir/ram/pool" "$dir/pool" >/dev/null
}

# A pool's memory is charged to who writes first, so that it has no place in a group that is smaller than the file.
records() {
  local pool=(--beside "$dir/pool")
  [ "$regime" != limited ] || pool=()
  # What checksums of contents cost: the library on a second image, in turn with the first.
  local sums=()
  if [ "$regime" = warm ] || [ "$regime" = durable ]; then
    fallocate -l "$((MIB * 3 / 2 + 64))M" "$dir/ram/sums.img"
    sums=(--sums "$dir/ram/sums.img")
  fi
  "$FRIT" exec --mount "$dir/direct" -- \
    "$RECORDS_BENCH" --image "$dir/ram/library.img" "${sums[@]}" --beside "$dir/ext4" --beside "$dir/direct" \
    --beside "$dir/frit-mount" "${pool[@]}" --mib "$MIB" --only "$RECORDS" --patterns "${PATTERNS:-write,rewrite,reread,random read,random write}" "$@"
}

for regime in $REGIMES; do
  echo
  case $regime in
    warm) echo "== warm"; fresh $((MIB * 3 / 2 + 64)) 4096; records;;
    durable) echo "== durable: fsync is part of the time"; fresh $((MIB * 3 / 2 + 64)) 4096; records --durable;;
    mmap) echo "== maps: shared, but for the library"; fresh $((MIB * 3 / 2 + 64)) 4096; records --mmap;;
    limited)
      if [ ! -w /sys/fs/cgroup/memory/cgroup.procs ]; then
        echo "== cache smaller than the file: skipped, no memory cgroup of version 1 to write to"
        continue
      fi
      echo "== cache smaller than the file: all in a memory cgroup of $LIMIT MiB"
      # The media belong to whoever touches them first: not to the group.
      fresh $((MIB * 3 / 2 + 64)) 4096
      cat "$dir"/ram/*.img >/dev/null
      mkdir "$group"
      echo $((LIMIT << 20)) >"$group/memory.limit_in_bytes"
      (echo $BASHPID >"$group/cgroup.procs" && records)
      rmdir "$group";;
    names)
      echo "== names in one directory"
      fresh $((NAMES / 1024 + 256)) $((NAMES + 1024))
      "$NAMES_BENCH" --image "$dir/ram/library.img" --beside "$dir/ext4" --beside "$dir/frit-mount" --beside "$dir/pool" --names "$NAMES";;
  esac
done
