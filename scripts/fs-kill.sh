#!/bin/bash
# Kills the daemon of a mounted file system (frit mount) at random under load, and checks after each kill that nothing
# that was acknowledged is lost. See scripts/fs_kill.py --help; --self-test checks the checks.
set -eu -o pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "fs-kill: skipped: no python3 on this machine" >&2; exit 77; }
if [[ " $* " != *" --self-test "* && " $* " != *" --help "* && " $* " != *" -h "* ]]; then
  [ "$(id -u)" = 0 ] || { echo "fs-kill: skipped: it needs root" >&2; exit 77; }
  [ -e /dev/fuse ] || { echo "fs-kill: skipped: no /dev/fuse" >&2; exit 77; }
  command -v fusermount3 >/dev/null || { echo "fs-kill: skipped: no fusermount3 (Debian: apt-get install fuse3)" >&2; exit 77; }
fi
exec python3 -B scripts/fs_kill.py "$@"
