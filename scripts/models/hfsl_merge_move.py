#!/usr/bin/env python3
"""An independent model of HFSL's placement by SSW: merges, moves between media, and accesses to both.

  scripts/models/hfsl_merge_move.py TRACE --ssw 2048
  scripts/models/hfsl_merge_move.py TRACE --ssw 1024 --compare lt --json
  scripts/models/hfsl_merge_move.py TRACE --method none

The model is written from the paper (Li et al., J. Syst. Archit. 2016), sections 2.3, 2.6.1 and 3.3.1. Its PCM never runs
short, so no page is destaged, and it has no garbage collection:

- A request of at most SSW bytes, or one marked as metadata, is written to PCM; any other to NAND (Fig. 13). The
  literal "smaller than SSW" is --compare lt.
- A page is entirely in one medium (Add_Flag). NAND is accessed in pages, PCM in sub-pages, of which a page in PCM has
  those that were written (State).
- A write of part of a page that is in NAND reads the page and merges it. This is an update (section 3.3.3). The merged
  page goes to the medium of the request.
- PCM is updated in place.

A test (crates/cli/tests/all/hfsl_models.rs) compares the counts with those of `frit run`.
"""

import argparse
import json

from recorded import requests_of

SECTOR_BYTES = 512
NAMES = ["flash_updates", "moved_to_pcm", "moved_to_nand", "nand-program host commands", "nand-read host commands",
         "nand-read merge commands", "pcm-write host bytes", "pcm-write migrate bytes", "pcm-read host bytes",
         "pcm-read merge bytes", "nand_pages", "pcm_level_pages", "destaged",
         "overflowed"]


class Model:
    def __init__(self, ssw, compare="le", method="same-level", page_bytes=2048, sub_bytes=512):
        self.ssw, self.compare, self.method = ssw, compare, method
        self.page_bytes, self.sub_bytes = page_bytes, sub_bytes
        self.nand = set()  # pages in NAND
        self.pcm = {}  # page in PCM -> its stored sub-pages
        self.counts = dict.fromkeys(NAMES, 0)

    def parts(self, first, end):
        """Yields the pages of a range of bytes, each with the part of it inside the page."""
        for page in range(first // self.page_bytes, -(-end // self.page_bytes)):
            base = page * self.page_bytes
            yield page, max(first, base) - base, min(end, base + self.page_bytes) - base

    def subs(self, first, end):
        """Yields the sub-pages of a part of a page, each with the number of bytes inside it."""
        for sub in range(first // self.sub_bytes, -(-end // self.sub_bytes)):
            base = sub * self.sub_bytes
            yield sub, min(end, base + self.sub_bytes) - max(first, base)

    def is_small(self, size, metadata):
        if self.method == "none":
            return False
        return metadata or (size <= self.ssw if self.compare == "le" else size < self.ssw)

    def write(self, first, end, metadata):
        small = self.is_small(end - first, metadata)
        for page, low, high in self.parts(first, end):
            (self.write_pcm if small else self.write_nand)(page, low, high)

    def merge(self, page, low, high):
        """Reads the rest of a page if only a part of it is written."""
        if high - low == self.page_bytes:
            return
        if page in self.nand:
            self.counts["flash_updates"] += 1
            self.counts["nand-read merge commands"] += 1
        self.counts["pcm-read merge bytes"] += len(self.pcm.get(page, ())) * self.sub_bytes

    def write_nand(self, page, low, high):
        self.merge(page, low, high)
        self.counts["nand-program host commands"] += 1
        self.counts["moved_to_nand"] += page in self.pcm
        self.pcm.pop(page, None)
        self.nand.add(page)

    def write_pcm(self, page, low, high):
        touched = dict(self.subs(low, high))
        if page in self.nand:
            self.merge(page, low, high)
            self.counts["moved_to_pcm"] += 1
            self.nand.remove(page)
            self.pcm[page] = set(range(self.page_bytes // self.sub_bytes))
            self.counts["pcm-write host bytes"] += len(touched) * self.sub_bytes
            rest = len(self.pcm[page]) - len(touched)
            self.counts["pcm-write migrate bytes"] += rest * self.sub_bytes
            return
        stored = self.pcm.setdefault(page, set())
        for sub, size in touched.items():
            # A sub-page that is stored for the first time is written whole, with zeros around the new bytes.
            self.counts["pcm-write host bytes"] += size if sub in stored else self.sub_bytes
            stored.add(sub)

    def read(self, first, end):
        for page, low, high in self.parts(first, end):
            self.counts["nand-read host commands"] += page in self.nand
            for sub, size in self.subs(low, high):
                if sub in self.pcm.get(page, ()):
                    self.counts["pcm-read host bytes"] += size

    def discard(self, first, end):
        """Discards whole pages. A part of a page with data is written with zeros, as a request of its own."""
        for page, low, high in self.parts(first, end):
            if high - low == self.page_bytes:
                self.nand.discard(page)
                self.pcm.pop(page, None)
            elif page in self.nand or page in self.pcm:
                base = page * self.page_bytes
                self.write(base + low, base + high, False)

    def run(self, requests):
        for r in requests:
            first, end = r.sector * SECTOR_BYTES, (r.sector + r.sectors) * SECTOR_BYTES
            if r.op == "W":
                self.write(first, end, r.metadata)
            elif r.op == "R":
                self.read(first, end)
            else:
                self.discard(first, end)
        self.counts["nand_pages"], self.counts["pcm_level_pages"] = len(self.nand), len(self.pcm)
        return self.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace", help="frit's recorded CSV, plain or .zst")
    parser.add_argument("--ssw", type=int, default=2048, help="bytes")
    parser.add_argument("--compare", choices=("le", "lt"), default="le")
    parser.add_argument("--method", choices=("same-level", "none"), default="same-level")
    parser.add_argument("--page-bytes", type=int, default=2048)
    parser.add_argument("--sub-bytes", type=int, default=512)
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    model = Model(args.ssw, args.compare, args.method, args.page_bytes, args.sub_bytes)
    counts = model.run(requests_of(args.trace, args.limit))
    if args.json:
        print(json.dumps(counts))
    else:
        for name, value in counts.items():
            print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
