#!/usr/bin/env python3
"""Counts hits, misses, emptied erase blocks and copies of a solid-state cache, independently of frit.

The model shares no code with the program. It is the cache of FlashTier as it was prototyped on the
OpenSSD board (Saxena et al., FAST 2013, section 3.3): pages are mapped alone, the last page of an
erase block has the log, and the victim of an eviction is the erase block with the fewest valid
pages. Its clean pages are dropped and its dirty pages are copied. Times, checkpoints and crashes
are not modelled.

The workload draws each request from a 64-bit linear congruential generator: a block at random, and
a read, a clean write or a dirty write. A read that misses is followed by a clean write of the block.
When `--dirty` blocks are dirty, all are cleaned.

Example:
  scripts/models/ssc.py --erase-blocks 64 --pages 32 --free 4 --span 3000 --count 100000
"""

import argparse
import json

MASK = (1 << 64) - 1


class Cache:
    """Erase blocks as sets of valid disk blocks."""

    def __init__(self, erase_blocks, pages, free):
        self.data_pages = pages - 1
        self.free = list(range(erase_blocks))
        self.keep_free = free
        self.valid = [set() for _ in range(erase_blocks)]
        self.full = set()
        self.open = None
        self.used = 0
        self.where = {}
        self.dirty = set()
        self.counts = {"hits": 0, "misses": 0, "emptied": 0, "evicted": 0, "copied": 0}

    def read(self, block):
        found = block in self.where
        self.counts["hits" if found else "misses"] += 1
        return found

    def write(self, block, dirty):
        self.place(block)
        if dirty:
            self.dirty.add(block)
        else:
            self.dirty.discard(block)

    def place(self, block):
        """Writes a page of a block to the open erase block."""
        if self.open is None:
            while self.open is None and len(self.free) <= self.keep_free:
                self.evict()
            if self.open is None:
                self.take()
        self.append(block)

    def take(self):
        self.open, self.used = self.free.pop(0), 0

    def append(self, block):
        if block in self.where:
            self.valid[self.where[block]].discard(block)
        self.where[block] = self.open
        self.valid[self.open].add(block)
        self.used += 1
        if self.used == self.data_pages:
            self.full.add(self.open)
            self.open = None

    def evict(self):
        """Empties the erase block with the fewest valid pages."""
        victim = min(self.full, key=lambda b: (len(self.valid[b]), len(self.valid[b] & self.dirty)))
        self.full.remove(victim)
        self.counts["emptied"] += 1
        for block in sorted(self.valid[victim]):
            if block in self.dirty:
                if self.open is None:
                    self.take()
                self.counts["copied"] += 1
                self.append(block)
            else:
                self.counts["evicted"] += 1
                del self.where[block]
        self.valid[victim] = set()
        self.free.append(victim)


def run(args):
    cache = Cache(args.erase_blocks, args.pages, args.free)
    state = args.seed
    for _ in range(args.count):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        block = (state >> 33) % args.span
        kind = (state >> 24) % 16
        if kind < args.reads:
            if not cache.read(block):
                cache.write(block, False)
        else:
            cache.write(block, kind < args.reads + args.dirty_writes)
        if len(cache.dirty) >= args.dirty:
            cache.dirty.clear()
    return cache.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--erase-blocks", type=int, default=64, help="erase blocks of data")
    parser.add_argument("--pages", type=int, default=32, help="pages of an erase block")
    parser.add_argument("--free", type=int, default=4, help="erased blocks that are kept")
    parser.add_argument("--span", type=int, default=3000, help="blocks of the disk that are accessed")
    parser.add_argument("--count", type=int, default=100000, help="requests")
    parser.add_argument("--reads", type=int, default=8, help="reads of 16 requests")
    parser.add_argument("--dirty-writes", type=int, default=4, help="dirty writes of 16 requests")
    parser.add_argument("--dirty", type=int, default=300, help="dirty blocks that are cleaned together")
    parser.add_argument("--seed", type=int, default=1)
    print(json.dumps(run(parser.parse_args())))


if __name__ == "__main__":
    main()
