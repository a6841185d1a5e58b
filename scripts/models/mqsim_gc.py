#!/usr/bin/env python3
"""Counts the garbage collection of MQSim as its source states it, independently of frit and without time.

The model is written from Flash_Block_Manager.cpp, GC_and_WL_Unit_Base.cpp and GC_and_WL_Unit_Page_Level.cpp of
MQSim (CMU-SAFARI/MQSim). A plane has write frontiers for data, for garbage collection, and for the mapping table,
which stays empty with an ideal table. When a frontier is full, the plane takes the free block with the fewest
erases. If fewer blocks are free then than GC_Exec_Threshold of all, and than 10, it collects the full block
with the most invalid pages. All commands take no time, so a victim is free again at once: in MQSim other
pages of it can become invalid meanwhile.

It reads the requests of `frit run --requests` on a drive that was filled in order, and compares the copied pages
and the erased blocks with those of a report of frit.

Example:
  frit mqsim --caching turned-off ssdconfig.xml > ssd.toml
  frit run ssd.toml gen:uniform,count=300k,ops=write,size=8K,align=8K --wrap --warm fill --qd 16 \\
      --requests r.csv --json report.json
  scripts/models/mqsim_gc.py ssdconfig.xml r.csv --filled CAPACITY --report report.json
"""

import argparse
import csv
import json
import sys

from mqsim_timing import Drive

VICTIMS_MAX = 10  # max_ongoing_gc_reqs_per_plane (SSD_Device.cpp)


class Plane:
    def __init__(self, blocks, pages, threshold):
        self.pages, self.threshold, self.copied, self.erased = pages, threshold, 0, 0
        self.valid = [0] * blocks
        self.held = [[] for _ in range(blocks)]  # logical pages of a block, by offset
        self.place = {}  # block and offset of a logical page
        self.erases, self.free = [0] * blocks, list(range(blocks))
        self.victims = set()
        self.frontier = {name: self.take() for name in ("data", "mapping", "gc")}

    def take(self):
        block = min(self.free, key=lambda b: self.erases[b])
        self.free.remove(block)
        return block

    def write(self, page, name="data"):
        if page in self.place:
            self.valid[self.place[page][0]] -= 1
        block = self.frontier[name]
        self.place[page] = block, len(self.held[block])
        self.held[block].append(page)
        self.valid[block] += 1
        if len(self.held[block]) == self.pages:
            self.frontier[name] = self.take()
            if len(self.free) < self.threshold:
                self.collect()

    def collect(self):
        if len(self.victims) >= VICTIMS_MAX:
            return
        others = set(self.frontier.values()) | self.victims
        full = [b for b, held in enumerate(self.held) if len(held) == self.pages and b not in others]
        victim = min(full, key=lambda b: self.valid[b])
        if self.valid[victim] == self.pages:
            return
        self.victims.add(victim)
        pages = [p for offset, p in enumerate(self.held[victim]) if self.place[p] == (victim, offset)]
        self.copied += len(pages)
        for page in pages:
            self.write(page, "gc")
        self.held[victim], self.valid[victim] = [], 0
        self.erased += 1
        self.erases[victim] += 1
        self.free.append(victim)
        self.victims.remove(victim)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", help="ssdconfig.xml of MQSim")
    parser.add_argument("requests", help="file of frit run --requests: writes of whole pages")
    parser.add_argument("--filled", type=int, required=True, help="bytes of the volume, which was filled in order")
    parser.add_argument("--report", help="report of frit run --json, to compare with")
    parser.add_argument("--within", type=float, default=0.03, help="largest relative difference")
    args = parser.parse_args()
    drive = Drive(args.config)
    blocks = int(drive.values["Block_No_Per_Plane"])
    threshold = max(int(float(drive.values["GC_Exec_Threshold"]) * blocks), VICTIMS_MAX)
    planes = {}

    def write(page):
        place = drive.place(page)
        if place not in planes:
            planes[place] = Plane(blocks, drive.pages, threshold)
        planes[place].write(page)

    for page in range(args.filled // drive.page_bytes):
        write(page)
    before = [sum(p.copied for p in planes.values()), sum(p.erased for p in planes.values())]
    written = 0
    with open(args.requests, newline="") as file:
        for row in csv.DictReader(file):
            first = int(row["offset"]) // drive.page_bytes
            for page in range(first, first + int(row["bytes"]) // drive.page_bytes):
                write(page)
                written += 1
    copied = sum(p.copied for p in planes.values()) - before[0]
    erased = sum(p.erased for p in planes.values()) - before[1]
    print(f"{written} pages written, {copied} copied, {erased} blocks erased: write amplification "
          f"{1 + copied / written:.3f}")
    if not args.report:
        return 0
    with open(args.report) as file:
        measured = counts(json.load(file), written)
    model = {"copied": copied, "erased": erased}
    apart = {name: measured[name] / max(model[name], 1) - 1 for name in model}
    print(", ".join(f"{name}: {measured[name]}, {apart[name]:+.2%}" for name in model))
    return int(any(abs(a) > args.within for a in apart.values()))


def counts(report, written):
    """Copied pages and erased blocks of a report of frit."""
    run = report[0]
    gc = next(c["ratio"] for c in run["write_amplification"]["nand_by_cause"] if c["cause"] == "gc")
    return {"copied": round(gc * written), "erased": run["media"][0]["erases"]}


if __name__ == "__main__":
    sys.exit(main())
