#!/usr/bin/env python3
"""Computes the throughput and the memory of nameless writes on the OpenSSD board, independently of frit.

The board, its times and its baseline FTL are those of `openssd_ftl.py`. The FTL of the host gives each
request queue a virtual page of its own (Saxena et al., FAST 2013, section 3.4):

  A write is divided into queues of at most 8 blocks of 4 KB. Each queue programs a whole virtual page, and
  reads nothing. With --merge N, a queue takes N writes at unrelated places before it is programmed; a write
  is acknowledged when the memory for its queue is free (32 queues). Otherwise it is done when its programs
  are. A read of blocks of one virtual page is one command, which transfers the whole page, or with
  --block-reads the blocks only.

Memory of the FTLs, for an image that fills its volume (--memory, bytes of the volume and of the NAND):

  page-mapped  for each block of 4 KB an entry of 8 bytes, and a reverse entry of 4 bytes for each page of NAND
  nameless     for each virtual block an entry of 8 bytes, and a bit for each page of NAND

Both have 24 bytes for each erase block of 4 MB, and memory for the virtual page that is being filled.

Examples:
  scripts/models/nameless_ftl.py --op write --size 4K
  scripts/models/nameless_ftl.py --memory 4000000000 4500000000
"""

import argparse
import collections
import json

import openssd_ftl as openssd
from openssd_ftl import BANKS, BLOCK, DONE, PAGE, PAGE_BLOCKS

QUEUES = 32
ERASE_BLOCK = 4 << 20


class Nameless:
    """The FTL of the host. Requests are whole blocks."""

    def __init__(self, board, filled, merge, block_reads):
        self.board, self.filled, self.merge, self.block_reads = board, filled, merge, block_reads
        self.address = {}  # block: bank and number of its virtual page. The file system has this map.
        self.queue = []
        self.memory = collections.deque([DONE] * QUEUES)
        self.turn = self.programmed = self.unrelated = 0
        self.next = None

    def dispatch(self):
        """Programs the queue into the next virtual page."""
        self.turn += 1
        bank = self.board.idle_bank(self.turn)
        done = self.board.send(bank, "program", PAGE)
        self.programmed += 1
        for block in self.queue:
            self.address[block] = bank, self.programmed
        self.queue, self.unrelated = [], 0
        return done

    def write(self, first, end):
        blocks = range(first // BLOCK, end // BLOCK)
        if self.merge == 1:
            ends = []
            for at in range(0, len(blocks), PAGE_BLOCKS):
                self.queue = list(blocks[at:at + PAGE_BLOCKS])
                ends.append(self.dispatch())
            return ends
        if blocks[0] != self.next or not self.queue:
            if self.unrelated == self.merge:
                self.recycle()
            self.unrelated += 1
        self.next = blocks[-1] + 1
        ends = []
        for block in blocks:
            if block not in self.queue:
                self.queue.append(block)
            ends.append(self.memory[0])
            if len(self.queue) == PAGE_BLOCKS:
                self.recycle()
        return ends

    def recycle(self):
        """Programs the queue, whose memory is free afterwards."""
        self.memory.popleft()
        self.memory.append(self.dispatch())

    def read(self, first, end):
        wanted = collections.OrderedDict()
        for block in range(first // BLOCK, end // BLOCK):
            page = block // PAGE_BLOCKS
            place = self.address.get(block, (page % BANKS, -1 - page) if self.filled else None)
            if place is not None:
                wanted[place] = wanted.get(place, 0) + 1
        size = (lambda n: n * BLOCK) if self.block_reads else (lambda n: PAGE)
        return [self.board.send(bank, "read", size(n)) for (bank, _), n in wanted.items()]


def memory(volume, nand):
    """Returns the bytes of the page-mapped and of the nameless FTL."""
    both = 24 * (nand // ERASE_BLOCK) + PAGE
    pages = nand // BLOCK
    virtual = -(-(volume // BLOCK) * 8 // BLOCK)
    return {"page": volume // BLOCK * 8 + pages * 4 + both, "nameless": virtual * 8 + pages // 8 + both}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--op", choices=("read", "write"), default="write")
    parser.add_argument("--pattern", choices=("random", "sequential"), default="random")
    parser.add_argument("--size", type=openssd.size_of, default="4K")
    parser.add_argument("--span", type=openssd.size_of, default="8G")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--depth", type=int, default=32, help="outstanding requests")
    parser.add_argument("--merge", type=int, default=1, help="unrelated writes of a request queue")
    parser.add_argument("--block-reads", action="store_true", help="reads transfer their blocks only")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--memory", nargs=2, type=int, metavar=("VOLUME", "NAND"), help="bytes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(memory(*options.memory)))
        return
    board = openssd.Board()
    ftl = Nameless(board, options.op == "read", options.merge, options.block_reads)
    starts = openssd.addresses(options.pattern, options.size, options.span, 0, options.count, options.seed)
    rate = openssd.throughput(ftl, board, options.op, starts, options.size, options.depth)
    print(json.dumps({"requests_per_s": rate}) if options.json else f"{rate:.1f} requests/s")


if __name__ == "__main__":
    main()
