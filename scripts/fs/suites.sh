# The suites. Sourced by scripts/fs-suite.sh; each function runs cases (see cases.sh) in a directory of its own on the
# mount and removes it, so that the next suite has the room.
# shellcheck shell=bash disable=SC2154

# of FULL QUICK: one of both, by --quick.
of() { if [ -n "$quick" ]; then echo "$2"; else echo "$1"; fi; }

# room DIRECTORY...: makes directories on the mount.
room() { timeout -k 10 60 mkdir -p "$@" || end_if_hung; }

# clear DIRECTORY: removes it, also where a stressor was stopped while a file of its own was immutable.
clear() {
  timeout -k 10 120 rm -rf "$1" 2>/dev/null && return
  end_if_hung
  timeout -k 10 60 chattr -R -i -a "$1" 2>/dev/null
  timeout -k 10 120 rm -rf "$1"
}

# POSIX semantics of each call. The read-only tests remount the file system, which needs that no file is open for
# writing: other tests of the same process leave such, so they run in a process of their own.
suite_pjdfstest() {
  local program=$tools/bin/pjdfstest config=scripts/fs/pjdfstest-$kind.toml
  [ -f "$config" ] || config=scripts/fs/pjdfstest-frit.toml
  install pjdfstest 0.2.2 || { skipped all 'no pjdfstest: cargo install failed'; return; }
  room "$at/posix" "$root/second"
  mounted "$root/second" || mount -t tmpfs -o size=64m tmpfs "$root/second"
  # The summary, and the names of what failed.
  local note='sed "s/\x1b\[[0-9;]*m//g" | awk "/ FAILED\$|UNEXPECTEDLY\$/ {names = names \" \" \$1}
    /^Summary:/ {sub(/Summary: /, \"\"); print \$0 (names ? \":\" names : \"\")}"'
  run calls 600 env NO_COLOR=1 RUST_BACKTRACE=0 "$program" -c "$config" -p "$at/posix" -s "$root/second"
  if [ "$kind" = other ]; then skipped read-only 'a mount of somebody else is not remounted'; return; fi
  # mount(8) leaves FUSE to a helper, also for a remount; the kernel can do it alone.
  mkdir -p "$root/bin"
  printf '#!/bin/sh\nexec %s -i "$@"\n' "$(command -v mount)" >"$root/bin/mount"
  chmod +x "$root/bin/mount"
  sed 's/^allow_remount = false/allow_remount = true/' "$config" >"$root/pjdfstest.toml"
  run read-only 120 env NO_COLOR=1 RUST_BACKTRACE=0 PATH="$root/bin:$PATH" \
    "$program" -c "$root/pjdfstest.toml" -p "$at/posix" -s "$root/second" erofs
  # A test that failed while it was read-only leaves it so.
  mount -i -o remount,rw "$at" 2>/dev/null
  clear "$at/posix"
}

# What programs see of a shared mapping, of files that are open without a name, of holes.
suite_semantics() {
  room "$at/semantics"
  local check judge='grep "^skip: " || true' may=yes
  [ "$kind" = other ] && may=no
  while read -r check; do
    run "$check" 120 env SUITE_MAY_FILL=$may python3 -B scripts/fs/semantics.py "$at/semantics" "$check"
  done < <(python3 -B scripts/fs/semantics.py --list)
  clear "$at/semantics"
}

# An image on a disk that is full, before it is mounted and after.
suite_fullhost() {
  local when
  if [ "$kind" != frit ]; then skipped all 'only an image has a disk that can be full'; return; fi
  if [ ! -e /dev/loop-control ] || ! command -v mkfs.ext4 >/dev/null; then
    skipped all 'no loop devices, or no mkfs.ext4 (e2fsprogs)'
    return
  fi
  for when in before after; do run "$when" 120 scripts/fs/fullhost.sh "$frit" "${TMPDIR:-/tmp}" "$when"; done
}

# Random operations on one file, compared with a copy in memory: one million in all.
suite_fsx() {
  local config seed count program=$tools/bin/fsx
  install fsx 0.3.2 || { skipped all 'no fsx: cargo install failed'; return; }
  room "$at/fsx"
  while read -r config count seed; do
    count=$(of "$count" $((count / 20)))
    run "$config $count seed $seed" 900 "$program" -q -f "scripts/fs/fsx-$config.toml" -N "$count" -S "$seed" \
      -P "$logs" "$at/fsx/file"
  done <<'LIST'
all 120000 1
all 120000 2
all 120000 3
mmap 150000 4
mmap 150000 5
aligned 150000 6
aligned 150000 7
large 20000 8
large 20000 9
LIST
  clear "$at/fsx"
}

suite_stress_ng() {
  local stressor label count options secs
  has stress-ng stress-ng all || return
  secs=$(of 3 1)
  stress-ng --help >"$root/stress-ng.help" 2>&1
  # Its own words where it leaves a test out; and no operation at all is no test.
  local judge='awk "/skip/ {sub(/.*\] /, \"\"); print \"skip: \" \$0; done = 1; exit}
    /metrc/ && \$4 == \"$stressor\" && \$5 ~ /^[0-9]+\$/ {ops = \$5; rate = \$9}
    END {if (done) exit 0; if (ops == 0) print \"skip: no operation within $secs s\"; else print rate \" bogo ops/s\"}"'
  while read -r stressor label count options; do
    if ! grep -qE -- "--$stressor N" "$root/stress-ng.help"; then
      skipped "$label" "not in this $(stress-ng --version | cut -d' ' -f1-3 | tr -d ,)"
      continue
    fi
    room "$at/stress"
    # Its io-uring takes a relative path only.
    # shellcheck disable=SC2086
    run "$label" $((secs + 120)) env -C "$at/stress" stress-ng "--$stressor" "$count" $options --timeout "$secs" \
      --temp-path . --verify --metrics-brief
    clear "$at/stress"
  done < <(grep -vE '^(#|$)' scripts/fs/stressors.txt)
}

# Loads of the time before: file servers, mail, many small files, large ones.
suite_load() {
  local secs note
  secs=$(of 10 3)
  room "$at/load/marks" "$at/load/mail" "$at/load/bonnie"
  has dbench dbench dbench && note='grep -oE "Throughput [0-9.]+ MB/sec"' \
    run dbench $((secs + 120)) dbench -D "$at/load" -t "$secs" 4
  # It says "Error" and goes on.
  has postmark postmark postmark && judge='! grep "^Error"' note='sed -nE "s/.*transactions \(([0-9]+ per second)\)/\1/p"' \
    run postmark 300 scripts/fs/postmark.sh "$at/load/mail" "$(of 20000 3000)"
  # A relative path: it overflows a buffer of its own with longer ones.
  has fs_mark fsmark fs_mark && note='awk "NF {rate = \$4} END {print rate \" files/s\"}"' \
    run fs_mark 300 env -C "$at/load" fs_mark -d marks -n "$(of 2000 500)" -s 16384 -t 2 -S 1 -L 2
  has bonnie++ bonnie++ bonnie++ && \
    run bonnie++ 300 bonnie++ -d "$at/load/bonnie" -u root -r 64 -s "$(of 512 128)" -n 4 -q
  clear "$at/load"
}

# Blocks that carry their own checksum, written and read again.
suite_fio() {
  local name options
  has fio fio all || return
  local note='grep -oE "bw=[^ ,]+" | paste -sd " "'
  while read -r name options; do
    room "$at/fio"
    # shellcheck disable=SC2086
    run "$name" 300 fio --name="$name" --directory="$at/fio" --size="$(of 64m 16m)" --numjobs=2 --group_reporting \
      --verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --verify_state_save=0 --fallocate=none $options
    clear "$at/fio"
  done <<'LIST'
randrw-buffered --rw=randrw --bs=4k --ioengine=psync --direct=0 --verify_backlog=1024
randrw-direct --rw=randrw --bs=4k --ioengine=libaio --iodepth=8 --direct=1 --verify_backlog=1024
randrw-mmap --rw=randrw --bs=4k --ioengine=mmap
write-sizes-buffered --rw=randwrite --bsrange=512-64k --bs_unaligned=1 --ioengine=psync --direct=0
write-sizes-direct --rw=randwrite --bsrange=4k-256k --blockalign=4k --ioengine=libaio --iodepth=4 --direct=1
write-mmap --rw=randwrite --bs=4k --ioengine=mmap
sequential-direct --rw=write --bs=1m --ioengine=psync --direct=1
sequential-sync --rw=write --bs=64k --ioengine=psync --direct=0 --fdatasync=8
LIST
}

suite_sqlite() {
  local mode
  room "$at/sqlite"
  for mode in wal delete truncate persist; do
    run "$mode" 300 python3 -B scripts/fs/databases.py "$at/sqlite" "$mode" "$(of 400 80)"
  done
  clear "$at/sqlite"
}

suite_postgres() {
  local bin
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
  [ -n "$bin" ] && [ -x "$bin/initdb" ] || { skipped all 'no PostgreSQL (Debian: apt-get install postgresql)'; return; }
  room "$at/postgres" "$root/sockets"
  local note='grep -E "^tps|tps =" | sed "s/ (.*//"'
  run pgbench 400 scripts/fs/postgres.sh "$bin" "$at/postgres" "$root/sockets" "$(of 10 4)" "$(of 5 2)"
  clear "$at/postgres"
}

suite_git() {
  room "$at/git"
  has git git all || return
  if git rev-parse --git-dir >/dev/null 2>&1; then
    run 'clone, fsck, checkout' 300 scripts/fs/git.sh "$PWD" "$at/git/clone"
  else skipped 'clone, fsck, checkout' 'this tree is not a git repository'; fi
  if command -v cargo >/dev/null; then
    [ -d "$at/git/clone" ] || { room "$at/git/clone"; cp -r Cargo.toml Cargo.lock crates "$at/git/clone"; }
    # Dependencies come from the registry's cache; without them there it fails, as it must not load any.
    run 'cargo build' 500 env CARGO_TARGET_DIR="$at/git/target" CARGO_BUILD_JOBS=2 \
      cargo build --quiet --offline --locked --manifest-path "$at/git/clone/Cargo.toml" -p frit-core
    run 'cargo test' 500 env CARGO_TARGET_DIR="$at/git/target" CARGO_BUILD_JOBS=2 \
      cargo test --quiet --offline --locked --manifest-path "$at/git/clone/Cargo.toml" -p frit-core --lib
  else skipped 'cargo build' 'no cargo on this machine'; fi
  clear "$at/git"
}
