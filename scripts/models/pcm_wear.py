#!/usr/bin/env python3
"""An independent model of start-gap and of round robin: wear of each bank and of the most worn block.

  scripts/models/pcm_wear.py TRACE --pcm 64M --compact           blocks are packed in order of first write
  scripts/models/pcm_wear.py TRACE --pcm 64M --compact --json

Start-gap is written from Qureshi et al. (MICRO 2009, section 4), round robin from the HALO paper (section V.B). A
region is a bank and has N stripes and one more, the gap. After each 100 writes of 4 KiB to a region the stripe before
the gap is copied into the gap. Round robin distributes stripes over ranks, then over the banks of a rank.

A test (crates/cli/tests/all/halo_model.rs) compares the wear with that of `frit wear`.
"""

import argparse
import json

from halo_buckets import blocks_of
from ntl_rounds import requests_of

STRIPE_BLOCKS, RANKS, BANKS, INTERVAL = 8, 8, 16, 100


class Bank:
    """A bank with a gap: N logical stripes on N + 1 places."""

    def __init__(self, n):
        self.n, self.start, self.gap = n, 0, n
        self.writes = self.moves = 0
        self.blocks = [[0] * STRIPE_BLOCKS for _ in range(n + 1)]

    def write(self, stripe, block):
        place = (stripe + self.start) % self.n
        self.blocks[place + (place >= self.gap)][block] += 1
        self.writes += 1
        if self.writes % INTERVAL == 0:
            self.move()

    def move(self):
        to = self.gap
        if self.gap == 0:
            self.gap, self.start = self.n, (self.start + 1) % self.n
        else:
            self.gap -= 1
        self.blocks[to] = [wear + 1 for wear in self.blocks[to]]
        self.moves += 1


def wear(leveler, blocks, pcm_blocks):
    """Returns the wear that a sequence of block writes causes."""
    stripes = -(-pcm_blocks // (STRIPE_BLOCKS * RANKS * BANKS))
    banks = [Bank(stripes) for _ in range(RANKS * BANKS)]
    for block in blocks:
        stripe, offset = divmod(block, STRIPE_BLOCKS)
        if leveler == "start-gap":
            bank, stripe = divmod(stripe, stripes)
        else:
            row, rank = divmod(stripe, RANKS)
            stripe, bank = divmod(row, BANKS)
            bank += rank * BANKS
        banks[bank].write(stripe, offset)
    return {
        "leveler": leveler,
        "moves": sum(b.moves for b in banks),
        "block_max": max(w for b in banks for stripe in b.blocks for w in stripe),
        "bank_writes": [b.writes + b.moves * STRIPE_BLOCKS for b in banks],
    }


def written(requests, compact):
    """Returns the blocks that the writes of a trace touch."""
    packed, found = {}, []
    for r in requests:
        if r.op == "W":
            for block in range(r.sector // 8, -(-(r.sector + r.sectors) // 8)):
                found.append(packed.setdefault(block, len(packed)) if compact else block)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("trace")
    parser.add_argument("--pcm", required=True, help="size of the PCM, such as 64M")
    parser.add_argument("--compact", action="store_true", help="pack the blocks in order of first write")
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    blocks = written(requests_of(o.trace, o.limit), o.compact)
    results = [wear(leveler, blocks, blocks_of(o.pcm)) for leveler in ("start-gap", "round-robin")]
    if o.json:
        print(json.dumps(results))
        return
    for r in results:
        mean = sum(r["bank_writes"]) / len(r["bank_writes"])
        print(f"{r['leveler']:12} life rate {mean / max(r['bank_writes']):.4f}, most worn block {r['block_max']}")


if __name__ == "__main__":
    main()
