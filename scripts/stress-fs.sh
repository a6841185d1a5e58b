#!/bin/bash
# File systems of the kernel on an attached frit volume, under the stressors of Debian: for each of ext4, xfs and
# btrfs mkfs, mount, stress-ng, dbench, fs_mark, fsx, unmount, fsck, remount, frit check. A summary at the end.
#
# SIZE is that of the volume, or "stack" for that of the stack.
#
#   scripts/stress-fs.sh [--frit PROGRAM] [--seconds N] [--size SIZE] [--stack STACK] [--dir DIRECTORY] [FS...]
#
# What is missing is said and left out. Nothing stays mounted or attached, whatever happens; everything that could hang
# is bounded. Exit code 0: all that ran passed; 77: nothing can run here.
set -u -o pipefail
cd "$(dirname "$0")/.."

frit=target/release/frit seconds=20 size=1G stack=hfsl-paper base=${TMPDIR:-/tmp} systems=()
while [ $# -gt 0 ]; do
  case $1 in
    --frit) frit=$2; shift 2;;
    --seconds) seconds=$2; shift 2;;
    --size) size=$2; shift 2;;
    --stack) stack=$2; shift 2;;
    --dir) base=$2; shift 2;;
    -h|--help) sed -n '2,11p' "$0" | cut -c3-; exit 0;;
    -*) echo "stress-fs: no option $1" >&2; exit 2;;
    *) systems+=("$1"); shift;;
  esac
done
[ ${#systems[@]} -gt 0 ] || systems=(ext4 xfs btrfs)
frit=$(realpath "$frit") || exit 2
sizes=(--size "$size")
[ "$size" != stack ] || sizes=()

[ "$(id -u)" = 0 ] || { echo "stress-fs: skipped: it needs root" >&2; exit 77; }
[ -e /dev/fuse ] && [ -e /dev/loop-control ] || { echo "stress-fs: skipped: no /dev/fuse or no loop devices" >&2; exit 77; }
has() { command -v "$1" >/dev/null; }
fsx=${FSX:-$(command -v fsx || echo "${CARGO_HOME:-$HOME/.cargo}/bin/fsx")}

root=$(mktemp -d "$base/frit-stress-XXXXXX")
volume=$root/volume at=$root/mnt log=$root/log
mkdir "$at"
summary=() failures=0

end() {
  mountpoint -q "$at" 2>/dev/null && timeout -k 5 60 umount -l "$at"
  [ -d "$volume" ] && timeout -k 5 200 "$frit" detach --force "$volume" >/dev/null 2>&1
  if [ "$failures" = 0 ]; then rm -rf "$root"; else echo "kept: $root" >&2; fi
}
trap end EXIT
trap 'failures=1; exit 130' INT TERM

# step FS NAME BOUND COMMAND...: runs it within BOUND seconds and notes what came of it.
step() {
  local fs=$1 name=$2 bound=$3 began took; shift 3
  began=$(date +%s.%N)
  timeout -k 10 "$bound" "$@" >"$log" 2>&1
  local code=$?
  took=$(echo "$(date +%s.%N) - $began" | bc)
  if [ $code = 0 ]; then
    summary+=("$(printf '%-6s %-22s ok     %8.1f s  %s' "$fs" "$name" "$took" "${note:+$(eval "$note" <"$log" | head -1)}")")
  else
    failures=$((failures + 1))
    summary+=("$(printf '%-6s %-22s FAILED (%s) %8.1f s' "$fs" "$name" "$code" "$took")")
    tail -20 "$log" >&2
    cp "$log" "$root/failed-$fs-${name// /-}.log"
  fi
  return $code
}

left_out() { summary+=("$(printf '%-6s %-22s left out: no %s on this machine' "$1" "$2" "$3")"); }

stress() {
  local fs=$1 note=
  # Stressors that work on files in a directory, with verification where they have one.
  if has stress-ng; then
    for s in 'hdd 1 --hdd-bytes 64M' 'iomix 1 --iomix-bytes 64M' 'fallocate 1 --fallocate-bytes 32M' 'dir 2' 'rename 2' \
             'link 2' 'seek 2 --seek-size 32M' 'aio 2' 'sync-file 1 --sync-file-bytes 16M' \
             'readahead 1 --readahead-bytes 32M' 'copy-file 1 --copy-file-bytes 128M'; do
      read -r name count options <<<"$s"
      # shellcheck disable=SC2086
      note='grep -oE "[0-9.]+ +[0-9.]+$" | tail -1 | sed "s/ .*/ bogo ops\/s/"' \
      step "$fs" "stress-ng $name" $((seconds + 120)) \
        stress-ng "--$name" "$count" $options --timeout "$((seconds / 4 + 1))" --temp-path "$at" --verify --metrics-brief
    done
  else left_out "$fs" stress-ng stress-ng; fi
  if has dbench; then
    note='grep -oE "Throughput [0-9.]+ MB/sec"' \
    step "$fs" "dbench 4" $((seconds + 120)) dbench -D "$at" -t "$seconds" 4
  else left_out "$fs" dbench dbench; fi
  if has fs_mark; then
    mkdir -p "$at/marks"
    # A relative path: it overflows a buffer of its own with longer ones.
    note='tail -1 | awk "{print \$4 \" files/s\"}"' \
    step "$fs" fs_mark 300 sh -c "cd '$at' && fs_mark -d marks -n 1000 -s 16384 -t 2 -S 1 -L 2"
  else left_out "$fs" fs_mark fsmark; fi
  if [ -x "$fsx" ]; then
    step "$fs" "fsx 5000" 300 "$fsx" -q -N 5000 -S 5 -P "$root" "$at/fsx.file"
  else left_out "$fs" fsx 'fsx (cargo install fsx)'; fi
}

one() {
  local fs=$1 note= device
  has "mkfs.$fs" || { left_out "$fs" all "mkfs.$fs"; return; }
  rm -rf "$volume"
  step "$fs" create 120 "$frit" create "$volume" --stack "$stack" "${sizes[@]}" || return
  step "$fs" attach 120 "$frit" attach "$volume" || return
  device=$(timeout 60 "$frit" attach "$volume")
  # Small btrfs runs out of room for its metadata unless it shares that with data.
  case $fs in ext4) force=(-q -F);; btrfs) force=(-q -f --mixed);; *) force=(-q -f);; esac
  step "$fs" mkfs 120 "mkfs.$fs" "${force[@]}" "$device" || return
  step "$fs" mount 60 mount "$device" "$at" || return
  stress "$fs"
  step "$fs" fstrim 120 fstrim -v "$at"
  # What is compared after the remount.
  find /usr/share/doc -maxdepth 1 | sort | head -150 | xargs -I{} cp -r {} "$at" 2>/dev/null
  sync -f "$at"
  (cd "$at" && find . -path ./lost+found -prune -o -type f -print0 | sort -z | xargs -0 sha256sum) >"$root/sums"
  step "$fs" umount 120 umount "$at" || return
  case $fs in
    ext4) check=(e2fsck -fn);; xfs) check=(xfs_repair -n);; *) check=(btrfs check);;
  esac
  step "$fs" fsck 300 "${check[@]}" "$device"
  step "$fs" "detach, attach" 300 sh -c "'$frit' detach '$volume' && '$frit' attach '$volume'" || return
  device=$(tail -1 "$log")
  step "$fs" remount 60 mount "$device" "$at" || return
  note='wc -l | sed "s/$/ files/"' step "$fs" "compare files" 300 sh -c "cd '$at' && sha256sum -c '$root/sums'"
  timeout 60 umount "$at"
  timeout 60 "$frit" ctl "$volume" stat --json >"$root/stat-$fs.json"
  step "$fs" detach 200 "$frit" detach "$volume" || return
  step "$fs" "frit scrub" 300 "$frit" scrub "$volume"
}

for fs in "${systems[@]}"; do
  one "$fs"
  mountpoint -q "$at" && timeout -k 5 60 umount -l "$at"
  timeout -k 5 200 "$frit" detach --force "$volume" >/dev/null 2>&1
done
printf '%s\n' "${summary[@]}"
[ "$failures" = 0 ] && echo "all passed" || { echo "$failures failed"; exit 1; }
