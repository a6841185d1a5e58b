#!/usr/bin/env bash
# Runs a command while the kernel permits FUSE requests through io_uring, and resets the parameter.
set -euo pipefail

parameter=/sys/module/fuse/parameters/enable_uring
if [ ! -w "$parameter" ]; then
  echo "skipped: FUSE over io_uring needs Linux 6.14 and root" >&2
  exit 0
fi
before=$(cat "$parameter")
trap 'echo "$before" > "$parameter"' EXIT
echo Y > "$parameter"
"$@"
