#!/usr/bin/env python3
"""An independent model of garbage collection in a page-mapped FTL, with greedy and FIFO victims.

  scripts/models/greedy_ftl.py TRACE --pages 441 --units 2 --fill
  scripts/models/greedy_ftl.py TRACE --units 2 --pages-per-block 64 --policy fifo --json

The rules are those of docs/reference/hfsl.md ("Striping", "Garbage collection", and the table of policies), without heat
and wear leveling:

- Page n lies on unit n mod units and stays there. The block that was freed first is written first.
- Each unit has a block that the host fills and one that garbage collection fills. A full block becomes a candidate when
  the next one is opened.
- Requests are so far apart that each finds an idle device. In the time between them, units with less than --high free
  blocks collect victims, and those that were begun are finished.
- A unit with at most 3 free blocks collects a victim as it writes. While a victim with v of b valid pages is collected, each written
  page requires v / (b - v) moves. A victim without valid pages is erased.
- If only the 2 reserved blocks are free, a write waits until a victim was collected (counted as forced).

With --hot, writes to the first so many pages have a stream of their own: the host fills another block with them. With
--isolated, garbage collection does so, too: pages of a victim with such pages go to another block than others.

Greedy victims are not unique. Among blocks with equally few valid pages, the program takes the one whose count fell
last. It lists counts up to a limit only, which all counts are below in blocks of up to 5 pages; at the first search, the
blocks are listed by number. Greedy models need small blocks for that reason, and FIFO models do not.

Tests (crates/cli/tests/all/hfsl_models.rs, streams_model.rs) compare the counts with those of `frit run`.
"""

import argparse
import collections
import json

from recorded import requests_of

SECTOR_BYTES = 512
RESERVE = 2
LOW = 3


class Block:
    def __init__(self, number):
        self.number = number
        self.pages = []  # logical page of each programmed page, None if it is invalid
        self.sealed = False
        self.hot = False
        self.changed = 0  # time at which the count of valid pages fell, or the block was sealed

    @property
    def valid(self):
        return sum(page is not None for page in self.pages)


class Unit:
    """A unit with its own blocks and garbage collection."""

    def __init__(self, args, counts):
        self.args, self.counts = args, counts
        self.blocks = [Block(n) for n in range(args.blocks)]
        self.free = collections.deque(self.blocks)
        self.open = {"host": None, "hot": None, "gc": None, "hot gc": None}
        self.queue = collections.deque()  # sealed blocks in order, for FIFO
        self.map = {}  # logical page -> (block, offset)
        self.victim = None
        self.clock = 0
        self.searched = False

    def fill(self, pages):
        """Fills the unit with pages in order, without any commands."""
        for page in pages:
            self.program("host", page)
        self.seal(self.open["host"])

    def tick(self):
        self.clock += 1
        return self.clock

    def seal(self, block):
        if block and not block.sealed and len(block.pages) == self.args.pages_per_block:
            block.sealed = True
            block.changed = self.tick()
            self.queue.append(block)

    def program(self, stream, page):
        block = self.open[stream]
        if block is None or len(block.pages) == self.args.pages_per_block:
            self.seal(block)
            block = self.open[stream] = self.free.popleft()
            block.hot = stream.startswith("hot")
        old = self.map.get(page)
        block.pages.append(page)
        self.map[page] = (block, len(block.pages) - 1)
        return old

    def invalidate(self, place):
        block, offset = place
        block.pages[offset] = None
        if block.sealed:
            block.changed = self.tick()

    def choose(self):
        sealed = [b for b in self.blocks if b.sealed and b.valid < self.args.pages_per_block]
        if not sealed:
            return None
        if self.args.policy == "fifo":
            while self.queue[0].valid == self.args.pages_per_block:
                self.queue.rotate(-1)
            return self.queue[0]
        fewest = min(b.valid for b in sealed)
        if fewest > 0 and not self.searched:
            self.searched = True
            for block in sealed:
                block.changed = self.tick()
        return max((b for b in sealed if b.valid == fewest), key=lambda b: b.changed)

    def find_victim(self):
        if self.victim is None:
            block = self.choose()
            if block is None:
                return False
            block.sealed = False
            self.queue.remove(block)
            self.victim, self.debt = block, 0
            self.v, self.gain = block.valid, self.args.pages_per_block - block.valid
            self.counts["gc_victims"] += 1
            self.counts["gc_victim_valid"] += block.valid
        return True

    def move(self):
        """Moves the next valid page of the victim, if there is one."""
        for offset, page in enumerate(self.victim.pages):
            if page is not None:
                self.victim.pages[offset] = None
                self.program("hot gc" if self.args.isolated and self.victim.hot else "gc", page)
                self.counts["nand-read gc commands"] += 1
                self.counts["nand-program gc commands"] += 1
                return True
        return False

    def finish(self):
        self.victim.pages = []
        self.free.append(self.victim)
        self.victim = None
        self.counts["nand-erase gc commands"] += 1

    def write(self, page):
        stream = "hot" if page < self.args.hot else "host"
        host = self.open[stream]
        if (host is None or len(host.pages) == self.args.pages_per_block) and len(self.free) <= RESERVE:
            self.seal(host)
            self.open[stream] = None
            while len(self.free) <= RESERVE:
                self.counts["gc_forced"] += 1
                assert self.find_victim(), "no block to clean"
                while self.move():
                    pass
                self.finish()
        old = self.program(stream, page)
        self.counts["nand-program host commands"] += 1
        if old:
            self.invalidate(old)
        self.pay()

    def idle(self):
        while (self.victim or len(self.free) < self.args.high) and self.find_victim():
            while self.move():
                pass
            self.finish()

    def pay(self):
        if self.victim is None and len(self.free) > LOW:
            return
        if not self.find_victim():
            return
        self.debt += self.v
        moves, self.debt = divmod(self.debt, self.gain)
        while moves > 0 and self.move():
            moves -= 1
        if self.victim.valid == 0:
            self.finish()


def run(args):
    names = ["nand-program host commands", "nand-program gc commands", "nand-read gc commands",
             "nand-erase gc commands", "gc_victims", "gc_victim_valid", "gc_forced"]
    counts = dict.fromkeys(names, 0)
    units = [Unit(args, counts) for _ in range(args.units)]
    if args.fill:
        for n, unit in enumerate(units):
            unit.fill(range(n, args.pages, args.units))
    for r in requests_of(args.trace, args.limit):
        if r.op == "W":
            first, end = r.sector * SECTOR_BYTES, (r.sector + r.sectors) * SECTOR_BYTES
            assert first % args.page_bytes == 0 and end % args.page_bytes == 0, "a write of part of a page"
            for page in range(first // args.page_bytes, end // args.page_bytes):
                units[page % args.units].write(page)
            for unit in units:
                unit.idle()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace", help="frit's recorded CSV, plain or .zst")
    parser.add_argument("--policy", choices=("greedy", "fifo"), default="greedy")
    parser.add_argument("--pages", type=int, default=0, help="logical pages, for --fill")
    parser.add_argument("--hot", type=int, default=0, help="pages from the first one on with a stream of their own")
    parser.add_argument("--isolated", action="store_true", help="keeps these pages apart in garbage collection")
    parser.add_argument("--units", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=64, help="blocks of a unit")
    parser.add_argument("--pages-per-block", type=int, default=4)
    parser.add_argument("--page-bytes", type=int, default=2048)
    parser.add_argument("--high", type=int, default=6, help="free blocks of a unit until which idle time collects")
    parser.add_argument("--fill", action="store_true", help="every page was written once, in order")
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.policy == "greedy" and args.pages_per_block > 5:
        parser.error("greedy victims are modelled for blocks of up to 5 pages")
    counts = run(args)
    if args.json:
        print(json.dumps(counts))
    else:
        for name, value in counts.items():
            print(f"{name:28} {value}")
        host = counts["nand-program host commands"]
        print(f"{'write amplification':28} {1 + counts['nand-program gc commands'] / max(host, 1):.4f}")


if __name__ == "__main__":
    main()
