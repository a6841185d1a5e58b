#!/bin/bash
# Serves volumes of trees and of composers, kills their servers at random, and compares the contents with what was
# acknowledged; then ext4 under stress. See scripts/live_trees.py --help.
set -eu -o pipefail
cd "$(dirname "$0")/.."
command -v fio >/dev/null || { echo "live-trees: skipped: no fio on this machine (Debian: apt-get install fio)" >&2; exit 77; }
for python in python3 /usr/bin/python3 ''; do
  [ -n "$python" ] || { echo "live-trees: skipped: no nbd for python3 (Debian: apt-get install python3-libnbd)" >&2; exit 77; }
  "$python" -c 'import nbd' 2>/dev/null && break
done
exec "$python" scripts/live_trees.py "$@"
