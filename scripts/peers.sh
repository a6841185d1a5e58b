#!/bin/bash
# frit's eviction policies beside libCacheSim's.
#
#   scripts/peers.sh test     hit counts are equal
#   scripts/peers.sh bench    speed, in one run
#
# libCacheSim comes from PyPI into .venv, in the version that scripts/peers/requirements.txt names.
set -euo pipefail
cd "$(dirname "$0")/.."

FRIT=${FRIT:-target/release/frit}
case "${1:-}" in
  test) script=equal.py ;;
  bench) script=speed.py ;;
  *) echo "usage: scripts/peers.sh test|bench" >&2; exit 2 ;;
esac
[ -x "$FRIT" ] || { echo "peers: no $FRIT; run 'make build'" >&2; exit 1; }
command -v python3 >/dev/null || { echo "peers: needs python3 for libCacheSim" >&2; exit 1; }

# Installed once, and again when the versions change.
if ! cmp -s scripts/peers/requirements.txt .venv/installed.txt; then
  { python3 -m venv .venv && .venv/bin/python -m pip install --quiet --disable-pip-version-check \
      -r scripts/peers/requirements.txt; } || {
    echo "peers: could not install libCacheSim from PyPI (scripts/peers/requirements.txt) into .venv:" \
      "it needs Python 3.11 or newer with venv, and the network once" >&2
    exit 1
  }
  cp scripts/peers/requirements.txt .venv/installed.txt
fi
exec .venv/bin/python -B "scripts/peers/$script" "$FRIT"
