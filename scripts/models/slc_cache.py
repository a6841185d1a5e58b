#!/usr/bin/env python3
"""Computes the times of writes through a write cache with one bit a cell, independently of frit.

  frit run STACK gen:sequential,ops=write,size=16K,align=16K,count=500 --requests writes.csv
  scripts/models/slc_cache.py writes.csv --full fold --cache-blocks 4 --cache-pages 8 --pages-per-block 24
  scripts/models/slc_cache.py --rates 256M,1G,2G --units 4 --full direct --cache-blocks 24 --cache-pages 384

The model shares no code with the program. It adds up the times of a data sheet for one unit whose commands are executed
one after the other, each write alone, and compares the end of each request with a file of `frit run --requests`.

- A write is a page. It goes to the cache while the cache has an erased page.
- direct: a write goes past a full cache. If the oldest full block has no valid page, it is erased first, and takes
  the write.
- fold: the valid pages of the oldest full block are read and programmed into other blocks, then it is erased, then the
  write is programmed. This goes on until a block was erased.
- Folded pages and pages past the cache have blocks of their own, which are filled page by page. No garbage is collected:
  give the unit more blocks than the writes need.

With --volume-blocks, the cache of --rates is dynamic: it takes blocks that the volume leaves free. The volume has so many
blocks of a unit, of which --fill are full, so floor((1 - fill) * volume blocks) can be used with one bit a cell, but
--cache-blocks at most. The first use of each costs an erase, which changes its mode.

With --rates, the model computes the mean rate of so many bytes written in order over several units with one bus each,
which are always busy: the sum of a data sheet.
"""

import argparse
import csv
import json
import math
import sys
from collections import deque


def page_type(args, page):
    """The type of a page, 0 for LSB, in the staggered order of Yaakobi et al."""
    types = len(args.t_prog)
    if types == 1:
        return 0
    return [0, 0, 0, 0, 0, 0, 1, 1][page] if page < 8 else (page - 8) // 2 % types


class Unit:
    def __init__(self, args):
        self.args = args
        self.now = 0
        self.free = args.cache_blocks
        self.open = None  # pages of the open block of the cache
        self.full = deque()  # full blocks of the cache, oldest first: lists of (page, version)
        self.newest = {}  # page -> version
        self.version = 0
        self.position = {"host": 0, "fold": 0}  # programmed pages of each kind of other blocks
        self.counts = {"slc_written": 0, "slc_bypassed": 0, "slc_folds": 0, "slc_folded": 0, "slc_forced": 0}

    def program_past(self, stream):
        page = self.position[stream] % self.args.pages_per_block
        self.position[stream] += 1
        self.now += self.args.transfer + self.args.t_prog[page_type(self.args, page)]

    def has_page(self):
        return self.free > 0 or (self.open is not None and len(self.open) < self.args.cache_pages)

    def valid(self, block):
        return [entry for entry in block if self.newest.get(entry[0]) == entry[1]]

    def fold_oldest(self):
        block = self.full.popleft()
        for _ in self.valid(block):
            self.now += self.args.t_read_slc + self.args.transfer
            self.program_past("fold")
            self.counts["slc_folded"] += 1
        self.now += self.args.t_erase
        self.free += 1
        self.counts["slc_folds"] += 1

    def make_room(self):
        if self.open is not None:
            self.full.append(self.open)
            self.open = None
        if self.args.full == "fold":
            self.counts["slc_forced"] += 1
            self.fold_oldest()
        elif not self.valid(self.full[0]):
            self.fold_oldest()

    def write(self, page):
        # The older version stays valid until the program of the new one.
        if self.args.cache_blocks and not self.has_page():
            self.make_room()
        self.version += 1
        if not self.has_page():
            self.program_past("host")
            self.counts["slc_bypassed"] += 1
        else:
            if self.open is None or len(self.open) == self.args.cache_pages:
                if self.open is not None:
                    self.full.append(self.open)
                self.free -= 1
                self.open = []
            self.open.append((page, self.version))
            self.now += self.args.transfer + self.args.t_prog_slc
            self.counts["slc_written"] += 1
        self.newest[page] = self.version


def of_requests(args):
    unit = Unit(args)
    with open(args.requests, newline="") as file:
        table = list(csv.DictReader(file))
    wrong = 0
    for row in table:
        assert row["op"] in ("write", "W") and int(row["bytes"]) == args.page_bytes, row
        unit.write(int(row["offset"]) // args.page_bytes)
        if int(row["end_ns"]) != unit.now:
            wrong += 1
            if wrong < 4:
                print(f"request {row}: {unit.now} expected", file=sys.stderr)
    if args.json:
        print(json.dumps(unit.counts))
    else:
        print(f"{len(table)} requests, {wrong} differ")
    return 1 if wrong else 0


def size_of(text):
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]


def rates(args):
    """Mean rates in MB/s, from the sums of one unit: all do the same."""
    blocks, mode_change = args.cache_blocks, 0.0
    if args.volume_blocks:
        blocks = min(blocks, math.floor((1 - args.fill) * args.volume_blocks))
        mode_change = args.t_erase / args.cache_pages
    cache = blocks * args.cache_pages
    cached = args.transfer + args.t_prog_slc + mode_change
    past = args.transfer + sum(args.t_prog) / len(args.t_prog)
    # The first write into each block of a full cache folds all its pages.
    fold = args.cache_pages * (args.t_read_slc + args.transfer + past) + args.t_erase
    result = {"cliff_bytes": cache * args.units * args.page_bytes}
    for text in args.rates.split(","):
        pages = size_of(text) / args.page_bytes / args.units
        rest = max(pages - cache, 0)
        if args.full == "fold":
            time = pages * cached + math.ceil(rest / args.cache_pages) * fold
        else:
            time = min(pages, cache) * cached + rest * past
        result[text] = size_of(text) / time * 1e3
    print(json.dumps(result))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("requests", nargs="?", help="file of frit run --requests")
    parser.add_argument("--rates", help="bytes written, such as 256M,1G")
    parser.add_argument("--full", choices=["direct", "fold"], default="direct")
    parser.add_argument("--units", type=int, default=1)
    parser.add_argument("--cache-blocks", type=int, required=True, help="blocks of the cache of a unit")
    parser.add_argument("--cache-pages", type=int, required=True, help="pages of such a block")
    parser.add_argument("--pages-per-block", type=int, default=1152)
    parser.add_argument("--volume-blocks", type=float, help="blocks of a unit for the volume, if the cache is dynamic")
    parser.add_argument("--fill", type=float, default=0.0, help="share of the volume that is full")
    parser.add_argument("--page-bytes", type=int, default=16384)
    parser.add_argument("--t-read-slc", type=int, default=4_000, help="ns")
    parser.add_argument("--t-prog-slc", type=int, default=75_000, help="ns")
    parser.add_argument("--t-prog", type=lambda text: [int(t) for t in text.split(",")], default=[937_500], help="ns")
    parser.add_argument("--t-erase", type=int, default=3_500_000, help="ns")
    parser.add_argument("--transfer", type=int, default=13_648, help="ns for a page")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    return rates(args) if args.rates else of_requests(args)


if __name__ == "__main__":
    sys.exit(main())
