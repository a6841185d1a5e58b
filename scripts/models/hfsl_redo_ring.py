#!/usr/bin/env python3
"""An independent model of the wear of HFSL's redo ring: cycles of each of its lines after a workload.

  scripts/models/hfsl_redo_ring.py TRACE --page-bytes 2048 --pcm-bytes 524288
  scripts/models/hfsl_redo_ring.py TRACE --page-bytes 1024 --lines 7 --json

The model is written from docs/reference/format.md (redo record) and docs/design/durability.md (redo records), for
map_persist = each and a volume that is new:

- The part of a request in a block of 4 KiB changes the entries of its pages together. If these are several, a record of
  24 bytes and 8 for each page of a block is written. A record takes the next line of the ring.
- The change of one page needs no record. If the latest record has this page, a retirement of the same size is written
  first, after which no record has it.
- A discard changes the entries of the pages that were ever written: that of a discarded page may not be durable yet.
- The ring has 64 lines, or as many as take 1/64 of PCM. A line of the ring is whole lines of PCM, of which a record
  wears those that it covers. Pages of 4 KiB or more have no ring.

Left out: garbage collection and destaging, which change entries of single pages; discards of parts of a page.

A test (crates/cli/tests/all/hfsl_pcm_models.rs) compares the cycles with those of `frit run`.
"""

import argparse
import json

from recorded import requests_of

BLOCK_BYTES, SECTOR_BYTES = 4096, 512


class Ring:
    def __init__(self, page_bytes, line_bytes, pcm_bytes, lines):
        pages = BLOCK_BYTES // page_bytes
        record_bytes = 24 + 8 * pages
        self.page_bytes = page_bytes
        self.worn = -(-record_bytes // line_bytes)  # lines of PCM that a record covers
        self.lines = lines or max(1, min(64, pcm_bytes // 64 // (self.worn * line_bytes)))
        self.written = set()
        self.latest = set()  # pages of the latest record
        self.records = self.retirements = 0

    def blocks(self, first, end):
        """Yields the pages of a range of bytes, by block of 4 KiB."""
        while first < end:
            stop = min(end, (first // BLOCK_BYTES + 1) * BLOCK_BYTES)
            yield list(range(first // self.page_bytes, -(-stop // self.page_bytes)))
            first = stop

    def change(self, pages):
        if len(pages) > 1:
            self.records += 1
            self.latest = set(pages)
        elif self.latest.intersection(pages):
            self.retirements += 1
            self.latest = set()

    def run(self, requests):
        for r in requests:
            first, end = r.sector * SECTOR_BYTES, (r.sector + r.sectors) * SECTOR_BYTES
            if r.op == "D" and (first % self.page_bytes or end % self.page_bytes):
                raise ValueError("a discard of a part of a page")
            for pages in self.blocks(first, end):
                if r.op == "W":
                    self.change(pages)
                    self.written.update(pages)
                elif r.op == "D":
                    self.change([p for p in pages if p in self.written])

    def cycles(self):
        """Returns the cycles of each line of PCM that the ring consists of and that records cover."""
        whole, rest = divmod(self.records + self.retirements, self.lines)
        return [whole + (line < rest) for line in range(self.lines) for _ in range(self.worn)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace", help="frit's recorded CSV, plain or .zst")
    parser.add_argument("--page-bytes", type=int, default=2048)
    parser.add_argument("--line-bytes", type=int, default=512, help="line of PCM")
    parser.add_argument("--pcm-bytes", type=int, default=1 << 28, help="size of PCM")
    parser.add_argument("--lines", type=int, default=0, help="redo_lines")
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.page_bytes >= BLOCK_BYTES:
        result = {"records": 0, "retirements": 0, "cycles": []}
    else:
        ring = Ring(args.page_bytes, args.line_bytes, args.pcm_bytes, args.lines)
        ring.run(requests_of(args.trace, args.limit))
        result = {"records": ring.records, "retirements": ring.retirements, "cycles": ring.cycles()}
    if args.json:
        print(json.dumps(result))
        return
    print(f"{result['records']} records, {result['retirements']} retirements")
    print(f"most worn line: {max(result['cycles'], default=0)} cycles, lines: {result['cycles']}")


if __name__ == "__main__":
    main()
