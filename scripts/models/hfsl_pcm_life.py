#!/usr/bin/env python3
"""An independent model of the life of PCM under HFSL.

  scripts/models/hfsl_pcm_life.py TRACE --volume-bytes 32102105088
  scripts/models/hfsl_pcm_life.py TRACE --volume-bytes 32102105088 --ssw 1024 --json

The paper (Li et al., J. Syst. Archit. 2016, section 3.3.7) gives an endurance of 10^9 cycles and no formula. The rule
is that of the experiments hfsl.f19.life and hfsl.f19.leveled: the days that the most worn line of 512 bytes, or the
mean line, lasts at the rate of the run. Cycles and time are those of hfsl_bytes.py. The header is a line, too: the mark that
the layer is in use wears it twice. The number of slots follows from docs/reference/format.md (HFSL in PCM).

A test (crates/cli/tests/all/hfsl_pcm_models.rs) compares the days with those of `frit reproduce`.
"""

import argparse
import json

from hfsl_bytes import IN_USE_BYTES, ByteModel
from recorded import byte_requests_of

ENDURANCE = 10**9
LINE_BYTES = 512
PAGE_BYTES, DESCRIPTOR_BYTES = 2048, 64
DAY_NS = 86_400 * 10**9
NAND = (8, 16)  # channels and chips of the prototype (Table 6)


def slots_of(volume_bytes, pcm_bytes):
    """Returns the number of sub-pages beside the header, the map and the room for alignment."""
    map_bytes = volume_bytes // PAGE_BYTES * 8
    return (pcm_bytes - LINE_BYTES - map_bytes - 2 * LINE_BYTES) // (LINE_BYTES + DESCRIPTOR_BYTES)


def days(requests, ssw, compare, volume_bytes, pcm_bytes):
    """Returns the life of the most worn line and of the mean line, in days."""
    model = ByteModel(ssw, slots=slots_of(volume_bytes, pcm_bytes), nand=NAND, compare=compare)
    duration_ns = model.run(requests)["duration_ns"]
    header = len(IN_USE_BYTES) if model.in_use else 0
    most = max([header, *model.cycles.values()])
    mean = (header + sum(model.cycles.values())) / (pcm_bytes // LINE_BYTES)
    return {name: ENDURANCE / cycles * duration_ns / DAY_NS for name, cycles in (("max", most), ("mean", mean))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace", help="frit's recorded CSV, plain or .zst")
    parser.add_argument("--ssw", type=int, default=2048, help="bytes")
    parser.add_argument("--compare", choices=("le", "lt"), default="le")
    parser.add_argument("--volume-bytes", type=int, required=True, help="size of the volume")
    parser.add_argument("--pcm-bytes", type=int, default=1 << 28, help="size of PCM")
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    life = days(byte_requests_of(args.trace, args.limit), args.ssw, args.compare, args.volume_bytes, args.pcm_bytes)
    if args.json:
        print(json.dumps(life))
    else:
        print(f"most worn line {life['max']:.1f} days, mean line {life['mean']:.1f} days")


if __name__ == "__main__":
    main()
