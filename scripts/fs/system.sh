# The file system under test: made, mounted, checked, released. Sourced by scripts/fs-suite.sh, which sets kind, frit,
# size, root, image, place, at, logs, mount_options and tools.
# shellcheck shell=bash disable=SC2154

# able: whether this machine can run the suite; says why not.
able() {
  [ "$(id -u)" = 0 ] || { echo "fs-suite: skipped: it needs root (mounts, users, loop devices)" >&2; return 1; }
  local tool
  for tool in python3 timeout; do
    command -v "$tool" >/dev/null || { echo "fs-suite: skipped: no $tool on this machine" >&2; return 1; }
  done
  case $on in
    frit|direct|pool|nameless)
      frit=$(realpath "$frit") && [ -x "$frit" ] || { echo "fs-suite: no $frit; run 'make build'" >&2; return 1; }
      [ -e /dev/fuse ] || { echo "fs-suite: skipped: no /dev/fuse" >&2; return 1; }
      "$frit" mkfs --help >/dev/null 2>&1 || { echo "fs-suite: skipped: $frit has no mkfs" >&2; return 1; };;
    ext4)
      [ -e /dev/loop-control ] || { echo "fs-suite: skipped: no loop devices" >&2; return 1; }
      command -v mkfs.ext4 >/dev/null || { echo "fs-suite: skipped: no mkfs.ext4 (e2fsprogs)" >&2; return 1; };;
    *) [ -d "$on" ] || { echo "fs-suite: no directory $on" >&2; return 1; };;
  esac
}

daemon='' device=''

# limited COMMAND...: within the bound of the case that runs (see cases.sh).
limited() { timeout -k 10 "$bound" "$@"; }

# image_users: processes that have the image mapped or open.
image_users() {
  { grep -lsF "$image" /proc/[0-9]*/maps; find /proc/[0-9]*/fd -lname "$image" 2>/dev/null; } | cut -d/ -f3 | sort -un
}

make_system() {
  case "$kind" in
    frit)
      limited "$frit" mkfs "$image" --size "$size" || return
      # Users other than root have direct access, too.
      [ ${#wrap[@]} = 0 ] || chmod 666 "$image";;
    pool)
      mkdir "$root/pool" && mount -t tmpfs -o "size=$size,huge=within_size" tmpfs "$root/pool" &&
        limited "$frit" mkfs --pool "$place";;
    nameless)
      limited "$frit" create "$place" --stack nameless-files --size "$size" && limited "$frit" mkfs "$place";;
    ext4) truncate -s "$size" "$image" && limited mkfs.ext4 -q -F "$image";;
  esac
}

# In the foreground of a child, so that it can be ended when it hangs.
mount_system() {
  case "$kind" in
    frit|pool|nameless)
      "$frit" mount "$place" "$at" -o suid --foreground "${mount_options[@]}" >>"$logs/daemon.log" 2>&1 & daemon=$!
      until_mounted;;
    ext4) device=$(losetup --find --show "$image") && limited mount "$device" "$at";;
  esac
}

# As a user does: the command returns when the mount is up.
mount_again() {
  case "$kind" in
    frit|pool|nameless)
      limited "$frit" mount "$place" "$at" -o suid "${mount_options[@]}" && mounted "$at" || return
      daemon=$(image_users | head -1) || true;;
    ext4) limited mount "$device" "$at";;
  esac
}

until_mounted() {
  local i
  for i in $(seq 300); do
    mounted "$at" && return
    kill -0 "$daemon" 2>/dev/null || { tail -5 "$logs/daemon.log"; return 1; }
    sleep 0.1
  done
  echo "not mounted after $((i / 10)) s"
  return 1
}

# mounted DIRECTORY: by the kernel's list; a look at the directory itself could wait for a daemon that hangs.
mounted() { grep -qF " $1 " /proc/self/mounts; }

alive() { mounted "$at" && timeout -k 5 30 stat -f "$at" >/dev/null 2>&1; }

# end_if_hung: nothing waits for ever for a daemon that does not answer.
end_if_hung() {
  [ -z "$daemon" ] || alive && return
  echo "the file system does not answer: its daemon is killed" >&2
  kill -9 "$daemon" 2>/dev/null
}

# Programs that a suite left behind may hold the mount for a moment.
unmount_system() {
  local i
  for i in $(seq 50); do
    if [ "$kind" != ext4 ]; then limited fusermount3 -u "$at" && break; else limited umount "$at" && break; fi
    sleep 0.2
  done
  mounted "$at" && return 1
  [ -n "$daemon" ] || return 0
  # The image is complete when the daemon has ended.
  for i in $(seq 600); do
    kill -0 "$daemon" 2>/dev/null || { daemon=; return 0; }
    sleep 0.1
  done
  echo "the daemon runs on after the unmount"
  return 1
}

check_system() {
  case "$kind" in
    frit|pool|nameless) limited "$frit" fsck "$place";;
    ext4) limited e2fsck -fn "$image";;
  esac
}

# Whatever happened: nothing stays.
release() {
  end_if_hung
  mounted "$at" && timeout -k 5 60 umount "$at" 2>/dev/null
  [ -n "$daemon" ] && kill -9 "$daemon" 2>/dev/null
  mounted "$at" && timeout -k 5 60 umount -l "$at"
  [ -n "$device" ] && losetup -d "$device"
}

# install CRATE VERSION: a program of crates.io, once, into target/tools.
install() {
  [ -x "$tools/bin/$1" ] && return
  command -v cargo >/dev/null || return 1
  echo "installing $1 from crates.io into target/tools" >&2
  timeout -k 10 540 cargo install --quiet --locked --root "$tools" "$1@$2" >"$logs/install-$1.log" 2>&1
}
