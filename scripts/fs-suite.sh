#!/bin/bash
# A conformance and load suite for a mounted file system: makes a fresh one, mounts it, runs what is listed below on
# it, unmounts, checks, mounts again and compares trees that were written before and after the load.
#
#   scripts/fs-suite.sh [--on frit|direct|pool|nameless|ext4|DIRECTORY] [--pool] [--only SUITE,SUITE] [--case REGEX] [--quick] [--frit PROGRAM]
#                       [--size SIZE] [--dir DIRECTORY] [--mount-option WORD]... [--keep] [--list]
#
#   --on      frit: ISPFS, mounted by frit mount (the default). ext4: on a loop device, to try the suite itself.
#             direct: the same, with all programs of the suites under frit exec.
#             pool (or --pool): ISPFS with contents in a pool on a tmpfs with huge pages, read and written by the
#             kernel itself. nameless: on a volume whose layer is a nameless-write device. A directory: what is mounted there already; it is not unmounted and not checked.
#   --only    some suites: pjdfstest semantics fullhost fsx stress-ng load fio sqlite postgres git
#   --case    of these suites the cases whose names match
#   --quick   a few minutes instead of about half an hour: fewer operations, shorter loads
#   --size    of the file system (4G); --dir: where its image and mount point are (/dev/shm, else TMPDIR or /tmp)
#   --mount-option  one more word for frit mount; --keep: leave the image where it is; --list: names of suites
#
# One line for each case, a table at the end. Logs are in target/fs-suite/. What is missing on the machine is said and
# skipped; scripts/fs/skips.txt names the cases that cannot pass on a kind of file system, with reasons. Nothing stays
# mounted, and everything is bounded in time. Exit code 0: nothing failed; 1: something did; 77: nothing can run here.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit
# Numbers with a point, names in UTF-8.
export LC_ALL=C.UTF-8
# shellcheck source=scripts/fs/system.sh
. scripts/fs/system.sh
# shellcheck source=scripts/fs/cases.sh
. scripts/fs/cases.sh
# shellcheck source=scripts/fs/suites.sh
. scripts/fs/suites.sh

all=(pjdfstest semantics fullhost fsx stress-ng load fio sqlite postgres git)
frit=target/release/frit on=frit only=() quick='' size=4G keep='' pattern='' mount_options=()
base=/dev/shm
[ -d "$base" ] && [ -w "$base" ] || base=${TMPDIR:-/tmp}
while [ $# -gt 0 ]; do
  case $1 in
    --on) on=$2; shift 2;;
    --pool) on=pool; shift;;
    --only) IFS=, read -r -a only <<<"$2"; shift 2;;
    --case) pattern=$2; shift 2;;
    --quick) quick=yes; shift;;
    --frit) frit=$2; shift 2;;
    --size) size=$2; shift 2;;
    --dir) base=$2; shift 2;;
    --mount-option) mount_options+=("$2"); shift 2;;
    --keep) keep=yes; shift;;
    --list) printf '%s\n' "${all[@]}"; exit 0;;
    -h|--help) awk 'NR > 1 {if (!/^#/) exit; print substr($0, 3)}' scripts/fs-suite.sh; exit 0;;
    *) echo "fs-suite: no option $1" >&2; exit 2;;
  esac
done
[ ${#only[@]} -gt 0 ] || only=("${all[@]}")
for suite in "${only[@]}"; do
  [[ " ${all[*]} " = *" $suite "* ]] || { echo "fs-suite: no suite $suite; there are: ${all[*]}" >&2; exit 2; }
done
able || exit 77

root=$(mktemp -d "$base/frit-suite-XXXXXX") || exit 2
chmod 755 "$root"
image=$root/image place=$root/image at=$root/mnt
[ "$on" != nameless ] || image=$root/volume/nand.medium place=$root/volume
[ "$on" != pool ] || image=$root/pool/p/image place=$root/pool/p
tools=$PWD/target/tools
wrap=()
case $on in
  direct) kind=frit wrap=("$frit" exec --mount "$at" --);;
  frit|pool|nameless|ext4) kind=$on;;
  *) kind=other at=$(mktemp -d "$on/frit-suite-XXXXXX") || exit 2; chmod 755 "$at";;
esac
logs=$PWD/target/fs-suite/$([ ${#wrap[@]} = 0 ] && echo "$kind" || echo direct)
rm -rf "$logs"
mkdir -p "$logs"

end() {
  stop_job
  if [ "$kind" = other ]; then rm -rf "$at"; else release; fi
  mounted "$root/second" && umount -l "$root/second"
  mounted "$root/pool" && umount -l "$root/pool"
  if [ -n "$keep" ]; then echo "kept: $root" >&2; else rm -rf "$root"; fi
}
trap end EXIT
trap 'exit 130' INT TERM HUP

prepare() {
  suite=system
  [ "$kind" = other ] && return
  mkdir "$at"
  run make 120 make_system && run mount 60 mount_system
}

# The end of a run: what was written is the same before and after, and the checker has nothing to say.
afterwards() {
  suite=system
  run 'write a second tree' 120 python3 -B scripts/fs/tree.py write "$at/second" "$root/second.list"
  run 'compare the first tree' 120 python3 -B scripts/fs/tree.py compare "$at/first" "$root/first.list"
  [ "$kind" = other ] && return
  run unmount 120 unmount_system || return
  run fsck 300 check_system
  run 'mount again' 60 mount_again || return
  run 'compare the first tree again' 120 python3 -B scripts/fs/tree.py compare "$at/first" "$root/first.list"
  run 'compare the second tree' 120 python3 -B scripts/fs/tree.py compare "$at/second" "$root/second.list"
  run 'unmount again' 120 unmount_system || return
  run 'fsck again' 300 check_system
}

if prepare; then
  run 'write a first tree' 120 python3 -B scripts/fs/tree.py write "$at/first" "$root/first.list"
  for suite in "${only[@]}"; do
    "suite_${suite//-/_}"
    [ "$kind" = other ] || alive || { last=$suite suite=system; failed "after $last" 0 'the mount is gone: nothing more can run'; break; }
  done
  afterwards
fi
table
