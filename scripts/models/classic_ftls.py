#!/usr/bin/env python3
"""An independent model of the classic mapping schemes: block map, BAST, FAST and DFTL.

  scripts/models/classic_ftls.py TRACE --scheme fast --pages 4096 --pages-per-block 64 --log-blocks 8 --fill
  scripts/models/classic_ftls.py TRACE --scheme dftl --pages 4096 --cmt 64 --json

It is written from the papers (Kim et al. 2002 for BAST, Lee et al. 2007 for FAST, Gupta et al. 2009 for DFTL) and shares
no code with the program. It follows which versions lie where, and counts merges, copies and erases; it has no time.

- A page that was never written is programmed into its data block if that is the next position of the block. NAND
  blocks are programmed in order, so others go to a log block.
- block: a request that overwrites pages of a block copies the other pages into a free block. Positions without data
  before the last page are programmed without data. If the request has the whole block, that is a switch.
- bast: each overwritten block has a log block. A full one is merged at the next write, and the least recently written
  one if a log block is needed. A log block with the first pages of its block in order takes the place of the data block
  (switch), after copies of the rest (partial); else all pages are copied (full).
- fast: one log block for sequential writes, which begin at the first page of a block, and log blocks that are filled in turn.
  The oldest is emptied by full merges of all blocks that have newest versions in it.
- dftl: a segmented LRU of half and half; an evicted changed entry is written with all changed entries of its
  translation page. Garbage collection is left out: give the program more space than the trace needs.

A test (crates/cli/tests/all/classic_models.rs) compares the counts with those of `frit run`.
"""

import argparse
import collections
import json

from recorded import requests_of

SECTOR_BYTES = 512


class BlockSchemes:
    """State that the schemes with data blocks share: for each block of NAND its programmed pages."""

    def __init__(self, args):
        self.size, self.limit, self.pages = args.pages_per_block, args.log_blocks, args.pages
        self.blocks = {}  # block -> list of pages, None for padding
        self.where = {}  # page -> block with its newest version
        self.data = {}  # logical block -> block
        self.made = 0
        self.counts = collections.Counter(
            dict.fromkeys(["merges_switch", "merges_partial", "merges_full", "merge_copies", "merge_padding", "host", "erases"], 0)
        )
        if args.fill:
            for page in range(args.pages):
                if page % self.size == 0:
                    self.data[page // self.size] = self.new()
                self.append(self.data[page // self.size], page)

    def new(self):
        self.made += 1
        self.blocks[self.made] = []
        return self.made

    def erase(self, block):
        assert all(self.where.get(page) != block for page in self.blocks[block])
        del self.blocks[block]
        self.counts["erases"] += 1

    def append(self, block, page):
        self.blocks[block].append(page)
        if page is not None:
            self.where[page] = block

    def write(self, block, page):
        self.append(block, page)
        self.counts["host"] += 1

    def copy_rest(self, logical, block, until=None):
        """Copies the newest versions to their positions in a block, behind its pages."""
        own = range(logical * self.size, min((logical + 1) * self.size, self.pages))
        held = [page for page in own if page in self.where]
        end = held[-1] % self.size + 1 if held else 0
        while len(self.blocks[block]) < (end if until is None else until):
            page = logical * self.size + len(self.blocks[block])
            there = page in self.where
            self.append(block, page if there else None)
            self.counts["merge_copies" if there else "merge_padding"] += 1

    def becomes_data(self, logical, block, *others):
        """A block becomes the data block, and those that it replaces are erased."""
        old = self.data.get(logical)
        self.data[logical] = block
        for gone in (old, *others):
            if gone is not None and gone != block:
                self.erase(gone)

    def into_data(self, page):
        """Writes a page into its data block, if its position there is the next one."""
        logical, position = divmod(page, self.size)
        if position == 0 and logical not in self.data:
            self.data[logical] = self.new()
        if logical in self.data and len(self.blocks[self.data[logical]]) == position:
            self.write(self.data[logical], page)
            return True
        return False

    def ends(self):
        pass


class BlockMap(BlockSchemes):
    copying = None  # (logical block, block)
    copied = False  # pages were copied into it

    def page(self, page):
        logical, position = divmod(page, self.size)
        if self.copying and (self.copying[0] != logical or len(self.blocks[self.copying[1]]) > position):
            self.ends()
        if not self.copying:
            if logical not in self.data:
                self.data[logical] = self.new()
            if len(self.blocks[self.data[logical]]) <= position:
                while len(self.blocks[self.data[logical]]) < position:
                    self.append(self.data[logical], None)
                    self.counts["merge_padding"] += 1
                self.write(self.data[logical], page)
                return
            self.copying = (logical, self.new())
            self.copied = position > 0
        self.copied |= len(self.blocks[self.copying[1]]) < position
        self.copy_rest(logical, self.copying[1], position)
        self.write(self.copying[1], page)

    def ends(self):
        if self.copying:
            logical, block = self.copying
            self.copying = None
            whole = len(self.blocks[block]) == self.size and not self.copied
            self.copy_rest(logical, block)
            self.counts["merges_switch" if whole else "merges_full"] += 1
            self.becomes_data(logical, block)


class Bast(BlockSchemes):
    def __init__(self, args):
        super().__init__(args)
        self.logs = collections.OrderedDict()  # logical block -> log block, least recently written first

    def page(self, page):
        logical = page // self.size
        log = self.logs.get(logical)
        if log is not None and len(self.blocks[log]) == self.size:
            self.merge(logical)
            log = None
        if log is None:
            if self.into_data(page):
                return
            if len(self.logs) == self.limit:
                self.merge(next(iter(self.logs)))
            log = self.logs[logical] = self.new()
        self.write(log, page)
        self.logs.move_to_end(logical)

    def merge(self, logical):
        log = self.logs.pop(logical)
        pages = self.blocks[log]
        if pages != [logical * self.size + i for i in range(len(pages))]:
            kind, block = "full", self.new()
        else:
            kind, block = ("switch" if len(pages) == self.size else "partial"), log
        if kind != "switch":
            self.copy_rest(logical, block)
        self.counts["merges_" + kind] += 1
        self.becomes_data(logical, block, log)


class Fast(BlockSchemes):
    def __init__(self, args):
        super().__init__(args)
        self.sequential = None  # (logical block, block)
        self.random = collections.deque()

    def page(self, page):
        logical, position = divmod(page, self.size)
        if self.sequential and self.sequential[0] == logical:
            if len(self.blocks[self.sequential[1]]) == position:
                self.write(self.sequential[1], page)
                return
            self.merge_sequential()
        if self.into_data(page):
            return
        if position == 0:
            if self.sequential:
                self.merge_sequential()
            self.sequential = (logical, self.new())
            self.write(self.sequential[1], page)
            return
        if not self.random or len(self.blocks[self.random[-1]]) == self.size:
            if len(self.random) == self.limit - 1:
                self.empty(self.random[0])
                self.erase(self.random.popleft())
            self.random.append(self.new())
        self.write(self.random[-1], page)

    def merge_sequential(self):
        logical, block = self.sequential
        self.sequential = None
        kind = "switch" if len(self.blocks[block]) == self.size else "partial"
        if kind == "partial":
            self.copy_rest(logical, block)
        self.counts["merges_" + kind] += 1
        self.becomes_data(logical, block)

    def empty(self, log):
        newest = [page for page in self.blocks[log] if self.where[page] == log]
        for logical in dict.fromkeys(page // self.size for page in newest):
            block = self.new()
            self.copy_rest(logical, block)
            self.counts["merges_full"] += 1
            taken = None
            if self.sequential and self.sequential[0] == logical:
                taken, self.sequential = self.sequential[1], None
            self.becomes_data(logical, block, taken)


class Dftl:
    def __init__(self, args):
        self.entries, self.limit = args.page_bytes // 4, args.cmt
        self.probation, self.protected = collections.OrderedDict(), collections.OrderedDict()  # page -> changed
        self.written = set(range((args.pages + self.entries - 1) // self.entries)) if args.fill else set()
        self.counts = collections.Counter(
            dict.fromkeys(
                ["cmt_hits", "cmt_misses", "cmt_evictions", "cmt_dirty_evictions", "translation_reads", "translation_writes"], 0
            )
        )

    def access(self, page, changes):
        if page in self.probation or page in self.protected:
            self.counts["cmt_hits"] += 1
            changed = self.probation.pop(page, False) or self.protected.pop(page, False)
            self.protected[page] = changed or changes
            if len(self.protected) > max(self.limit // 2, 1):
                oldest, changed = self.protected.popitem(last=False)
                self.probation[oldest] = changed
            return
        self.counts["cmt_misses"] += 1
        if len(self.probation) + len(self.protected) == self.limit:
            self.evict()
        if page // self.entries in self.written:
            self.counts["translation_reads"] += 1
        self.probation[page] = changes

    def evict(self):
        page, changed = (self.probation or self.protected).popitem(last=False)
        self.counts["cmt_evictions"] += 1
        if not changed:
            return
        self.counts["cmt_dirty_evictions"] += 1
        own = page // self.entries
        self.counts["translation_reads"] += own in self.written
        self.counts["translation_writes"] += 1
        self.written.add(own)
        for segment in (self.probation, self.protected):
            for other in segment:
                if other // self.entries == own:
                    segment[other] = False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--scheme", choices=["block", "bast", "fast", "dftl"], required=True)
    parser.add_argument("--pages", type=int, required=True, help="pages of the volume")
    parser.add_argument("--page-bytes", type=int, default=4096)
    parser.add_argument("--pages-per-block", type=int, default=64)
    parser.add_argument("--log-blocks", type=int, default=8)
    parser.add_argument("--cmt", type=int, default=64, help="entries of the cached mapping table")
    parser.add_argument("--fill", action="store_true", help="begin with a volume that was filled in order")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    scheme = {"block": BlockMap, "bast": Bast, "fast": Fast, "dftl": Dftl}[args.scheme](args)
    for request in requests_of(args.trace):
        first = request.sector * SECTOR_BYTES // args.page_bytes
        end = ((request.sector + request.sectors) * SECTOR_BYTES - 1) // args.page_bytes + 1
        for page in range(first, end):
            if args.scheme == "dftl":
                scheme.access(page, request.op == "W")
            elif request.op == "W":
                scheme.page(page)
        if args.scheme != "dftl" and request.op == "W":
            scheme.ends()
    counts = dict(scheme.counts)
    if args.scheme != "dftl":
        copies = counts["merge_copies"]
        counts["nand-program host commands"] = counts.pop("host")
        counts["nand-erase gc commands"] = counts.pop("erases")
        counts["nand-read gc commands"] = copies
        counts["nand-program gc commands"] = copies + counts["merge_padding"]
    if args.json:
        print(json.dumps(counts))
    else:
        for name, value in counts.items():
            print(f"{name:<28} {value}")


if __name__ == "__main__":
    main()
