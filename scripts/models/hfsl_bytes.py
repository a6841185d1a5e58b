#!/usr/bin/env python3
"""An independent model of HFSL with map_persist = halt: bytes, wear and time of PCM for requests of bytes.

  scripts/models/hfsl_bytes.py TRACE --ssw 128 --gran 2
  scripts/models/hfsl_bytes.py TRACE --ssw 64 --gran 64 --json

The placement is that of hfsl_merge_move.py. The rest is written from the paper (Li et al., J. Syst. Archit. 2016,
section 2.7.2 and Table 7) and from docs/reference/hfsl.md:

- The first write of a sub-page writes all of it. A later one is rounded to ADDR_GRAN_PCM. If the rounding adds bytes,
  the rounded range is read first. The chips of a channel write whole units of 16 bytes (2 bytes on each of 8).
- A sub-page is a line of PCM, which each write wears by one cycle. An update of a line that has pcm_slot_spread cycles
  more than the next free one goes there instead, as a whole sub-page.
- Slots are taken in the order in which they were freed. They alternate between the two channels of PCM.

One request is outstanding, whose commands take the times of hfsl_times.py. The first write waits for the mark in the
header that the layer is in use: 512 bytes, and 16 bytes behind them.

Left out: garbage collection, destaging, discards, and first writes that leave a busy chip of NAND for an idle one.

A test (crates/cli/tests/all/hfsl_pcm_models.rs) compares bytes, cycles and time with those of `frit run`.
"""

import argparse
import collections
import json

from hfsl_merge_move import Model
from hfsl_times import Commands, pcm_ns
from recorded import byte_requests_of

WRITE_UNIT = 16
IN_USE_BYTES = [512, 16]


class ByteModel(Model):
    def __init__(self, ssw, gran=512, spread=1000, slots=1 << 20, nand=(8, 8), compare="le"):
        super().__init__(ssw, compare)
        self.gran, self.spread = gran, spread
        self.free = collections.deque(range(slots))
        self.cycles = collections.Counter()  # slot -> writes
        self.commands = Commands(*nand)
        self.duration_ns = 0
        self.in_use = False

    def count(self, name, size):
        for unit, n in (("bytes", size), ("commands", 1)):
            self.counts[f"{name} {unit}"] = self.counts.get(f"{name} {unit}", 0) + n

    def pcm_read(self, slot, cause, size):
        self.count(f"pcm-read {cause}", size)
        return self.commands.pcm(slot, "read", size)

    def pcm_write(self, slot, cause, size, after=()):
        self.count(f"pcm-write {cause}", size)
        self.cycles[slot] += 1
        return self.commands.pcm(slot, "write", size, after)

    def nand_command(self, page, op, cause, after=()):
        self.count(f"nand-{op} {cause}", self.page_bytes)
        return self.commands.nand(page, op, after)

    def merge(self, page, low, high):
        """Reads the rest of a page if only a part of it is written. Returns the commands."""
        if high - low == self.page_bytes:
            return ()
        if page in self.nand:
            self.counts["flash_updates"] += 1
            return (self.nand_command(page, "read", "merge"),)
        stored = sorted(self.pcm.get(page, {}).items())
        return tuple(self.pcm_read(slot, "merge", self.sub_bytes) for _, slot in stored)

    def write_nand(self, page, low, high):
        self.nand_command(page, "program", "host", self.merge(page, low, high))
        for _, slot in sorted(self.pcm.pop(page, {}).items()):
            self.free.append(slot)
        self.nand.add(page)

    def write_pcm(self, page, low, high):
        touched = {sub: size for sub, size in self.subs(low, high)}
        if page in self.nand:
            after = self.merge(page, low, high)
            self.counts["moved_to_pcm"] += 1
            self.nand.remove(page)
            self.pcm[page] = {}
            for sub in range(self.page_bytes // self.sub_bytes):
                self.pcm[page][sub] = slot = self.free.popleft()
                self.pcm_write(slot, "host" if sub in touched else "migrate", self.sub_bytes, after)
            return
        stored = self.pcm.setdefault(page, {})
        for sub in touched:
            base = sub * self.sub_bytes
            first, end = max(low, base) - base, min(high, base + self.sub_bytes) - base
            if sub not in stored:
                stored[sub] = self.free.popleft()
                self.pcm_write(stored[sub], "host", self.sub_bytes)
            elif self.cycles[stored[sub]] >= self.cycles[self.free[0]] + self.spread:
                self.move(stored, sub, end - first)
            else:
                self.update(stored[sub], first, end)

    def move(self, stored, sub, size):
        """Writes a whole sub-page to the next free slot in place of its own."""
        old, new = stored[sub], self.free.popleft()
        whole = size == self.sub_bytes
        after = () if whole else (self.pcm_read(old, "merge", self.sub_bytes),)
        self.pcm_write(new, "host", self.sub_bytes, after)
        stored[sub] = new
        self.free.append(old)
        self.counts["slots_moved"] = self.counts.get("slots_moved", 0) + 1

    def update(self, slot, first, end):
        low, high = first // self.gran * self.gran, -(-end // self.gran) * self.gran
        after = () if (low, high) == (first, end) else (self.pcm_read(slot, "merge", high - low),)
        low, high = low // WRITE_UNIT * WRITE_UNIT, -(-high // WRITE_UNIT) * WRITE_UNIT
        self.pcm_write(slot, "host", high - low, after)

    def read(self, first, end):
        for page, low, high in self.parts(first, end):
            if page in self.nand:
                self.nand_command(page, "read", "host")
            for sub, size in self.subs(low, high):
                if sub in self.pcm.get(page, {}):
                    self.pcm_read(self.pcm[page][sub], "host", size)

    def run(self, requests):
        for r in requests:
            if r.op == "R":
                self.read(r.first, r.end)
            else:
                if not self.in_use:
                    self.in_use = True
                    self.duration_ns += sum(pcm_ns("write", size) for size in IN_USE_BYTES)
                self.write(r.first, r.end, r.metadata)
            self.duration_ns += self.commands.duration()
        return {
            **{name: n for name, n in self.counts.items() if n > 0},
            "slots_moved": self.counts.get("slots_moved", 0),
            "most_cycles": max(self.cycles.values(), default=0),
            "duration_ns": self.duration_ns,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace", help="frit's recorded CSV, plain or .zst")
    parser.add_argument("--ssw", type=int, default=2048, help="bytes")
    parser.add_argument("--gran", type=int, default=512, help="ADDR_GRAN_PCM, bytes")
    parser.add_argument("--spread", type=int, default=1000, help="pcm_slot_spread, cycles")
    parser.add_argument("--slots", type=int, default=1 << 20, help="sub-pages of PCM")
    parser.add_argument("--nand", default="8,8", help="channels and chips of NAND")
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    nand = tuple(int(n) for n in args.nand.split(","))
    model = ByteModel(args.ssw, args.gran, args.spread, args.slots, nand)
    counts = model.run(byte_requests_of(args.trace, args.limit))
    if args.json:
        print(json.dumps(counts))
    else:
        for name, value in counts.items():
            print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
