#!/bin/bash
# Kills a frit server at random under PostgreSQL and SQLite, and checks after each kill that nothing that was
# acknowledged is lost. See scripts/kill_loop.py --help; docs/guide/fuse.md has figures.
set -eu -o pipefail
cd "$(dirname "$0")/.."
for tool in python3 losetup mkfs.ext4 e2fsck runuser; do
  command -v "$tool" >/dev/null || { echo "kill-loop: skipped: no $tool on this machine" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "kill-loop: skipped: it needs root" >&2; exit 77; }
[ -e /dev/fuse ] && [ -e /dev/loop-control ] || { echo "kill-loop: skipped: no /dev/fuse or no loop devices" >&2; exit 77; }
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || {
  echo "kill-loop: skipped: no PostgreSQL on this machine (Debian: apt-get install postgresql python3-psycopg2)" >&2; exit 77; }
for python in python3 /usr/bin/python3 ''; do
  [ -n "$python" ] || { echo "kill-loop: skipped: no psycopg2 for python3 (Debian: apt-get install python3-psycopg2)" >&2; exit 77; }
  "$python" -c 'import psycopg2, sqlite3' 2>/dev/null && break
done
exec "$python" scripts/kill_loop.py "$@"
