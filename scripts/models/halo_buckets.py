#!/usr/bin/env python3
"""An independent model of HALO's buckets and destaging, written from the paper and not from the program.

  scripts/models/halo_buckets.py TRACE --size 6M                 counts of hits, evictions and destaged blocks
  scripts/models/halo_buckets.py TRACE --size 6M --list          each eviction: request, bucket, reason, blocks
  scripts/models/halo_buckets.py TRACE --size 6M --th-bcounts 16 --halo-scan 256 --json

A bucket is a region of 1 MiB of the disk. Only a write brings a block into the cache (algorithm 1 of the paper). When
no slot is free, the search for a victim goes on where the last one ended, over the buckets that hold blocks. A bucket
is evicted as a whole if it holds more blocks than the average by TH_BCOUNTS and was not accessed for TH_RECENCY
requests, or if it was not accessed for OUTDATE_RECENCY requests. Three details that the paper leaves open are as in
docs/reference/cache-policies.md: thresholds are multiples of the slots; both fall in equal steps over halo_scan buckets,
after which the next bucket is taken; numbers are fixed point with 20 fraction bits.

A test (crates/cli/tests/all/halo_model.rs) compares the counts with those of `frit cache`.
"""

import argparse
import bisect
import json

from ntl_rounds import requests_of

BLOCK_SECTORS = 8
BUCKET_BLOCKS = 256
POINT = 20


def toward_zero(a, b):
    """Returns a quotient without its fraction."""
    return -(-a // b) if a < 0 else a // b


class Halo:
    """The cache: blocks by bucket, and the time of the last access to each bucket."""

    def __init__(self, slots, th_bcounts=64, th_recency=0.05, outdate_recency=16.0, halo_scan=1024):
        self.slots, self.th_bcounts, self.scan = slots, th_bcounts, halo_scan
        self.th_recency, self.outdate_recency = int(th_recency * slots), int(outdate_recency * slots)
        self.buckets, self.recency, self.active = {}, {}, []
        self.total = self.clock = self.buck_scan = 0
        self.evicted = []
        self.counts = dict.fromkeys(
            ("accesses", "hits", "writes", "write_hits", "evictions", "evicted", "destaged", "evictions_thresholds",
             "evictions_lowered_thresholds", "evictions_outdated", "evictions_end_of_scan"), 0)

    def access(self, block, is_write):
        bucket = block // BUCKET_BLOCKS
        self.counts["accesses"] += 1
        self.counts["writes"] += is_write
        if block in self.buckets.get(bucket, ()):
            self.counts["hits"] += 1
            self.counts["write_hits"] += is_write
            self.recency[bucket] = self.clock
        elif is_write:
            while self.total == self.slots:
                self.destage()
            if bucket not in self.buckets:
                self.buckets[bucket] = set()
                bisect.insort(self.active, bucket)
            self.buckets[bucket].add(block)
            self.total += 1
            self.recency[bucket] = self.clock

    def destage(self):
        """Evicts the next eligible bucket."""
        count = ((self.total << POINT) // len(self.active)) + (self.th_bcounts << POINT)
        age = self.th_recency << POINT
        count_step, age_step = toward_zero(count, self.scan), age // self.scan
        scanned = 0
        while True:
            at = bisect.bisect_left(self.active, self.buck_scan) % len(self.active)
            bucket = self.active[at]
            self.buck_scan = bucket + 1
            idle = self.clock - self.recency[bucket]
            dense = len(self.buckets[bucket]) << POINT > count and idle << POINT > age
            outdated = idle > self.outdate_recency
            if dense or outdated or scanned >= self.scan:
                if scanned >= self.scan:
                    reason = "outdated" if outdated and not dense else "end_of_scan"
                elif dense:
                    reason = "lowered_thresholds" if scanned else "thresholds"
                else:
                    reason = "outdated"
                return self.evict(bucket, reason)
            count, age, scanned = count - count_step, age - age_step, scanned + 1

    def evict(self, bucket, reason):
        """Evicts a bucket. All its blocks are dirty, because only writes bring them in."""
        blocks = self.buckets.pop(bucket)
        self.active.remove(bucket)
        self.total -= len(blocks)
        self.counts["evictions"] += 1
        self.counts["evicted"] += len(blocks)
        self.counts["destaged"] += len(blocks)
        self.counts[f"evictions_{reason}"] += 1
        self.evicted.append((self.clock, bucket, reason, sorted(blocks)))

    def run(self, requests):
        for r in requests:
            if r.op not in "RW" or r.sectors == 0:
                continue
            self.clock += 1
            for block in range(r.sector // BLOCK_SECTORS, -(-(r.sector + r.sectors) // BLOCK_SECTORS)):
                self.access(block, r.op == "W")
        return self.counts


def blocks_of(size):
    """Returns the blocks of a size such as 6M."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = (size[:-1], units[size[-1]]) if size[-1] in units else (size, 1)
    return int(number) * unit // 4096


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("trace")
    parser.add_argument("--size", required=True, help="size of the cache, such as 6M")
    parser.add_argument("--th-bcounts", type=int, default=64)
    parser.add_argument("--th-recency", type=float, default=0.05)
    parser.add_argument("--outdate-recency", type=float, default=16.0)
    parser.add_argument("--halo-scan", type=int, default=1024)
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--list", action="store_true", help="print each eviction")
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    halo = Halo(blocks_of(o.size), o.th_bcounts, o.th_recency, o.outdate_recency, o.halo_scan)
    counts = halo.run(requests_of(o.trace, o.limit))
    if o.list:
        for clock, bucket, reason, blocks in halo.evicted:
            print(f"request {clock}: bucket {bucket}, {reason}: {' '.join(map(str, blocks))}")
    elif o.json:
        print(json.dumps(counts))
    else:
        for name, value in counts.items():
            print(f"{name:30} {value}")


if __name__ == "__main__":
    main()
