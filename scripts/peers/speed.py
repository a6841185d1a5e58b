"""Replay of frit's policies beside libCacheSim's, in one run: the same blocks, the same sizes, one thread.

    speed.py FRIT

libCacheSim reads its own binary format; its C code loops over the trace, Python only starts it. frit's time is
that of the loop over accesses in memory. Rounds alternate; the best of each counts.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import sequences

ROUNDS = 3
# Policies that let whole buckets go.
OWN = ["halo", "sweep", "wow"]
# Zipf over 16 GiB, so that the structures of the larger cache do not fit the processor's.
WORKLOADS = [("gen:zipf,count=2M,size=4K,span=16G,seed=1", [256, 2048])]


def theirs(policy, slots, path):
    # Its hash table as large as the cache needs: neither too small nor all over memory.
    cache = sequences.POLICIES[policy](slots, hashpower=max(16, math.ceil(math.log2(slots)) + 1))
    reader = sequences.reader(path)
    start = time.perf_counter()
    cache.process_trace(reader)
    return time.perf_counter() - start


def ours(frit, workload, policy, slots):
    out = subprocess.run([frit, "cache", workload, "--json", "--policy", policy, "--size", str(slots * 4096)],
                         check=True, capture_output=True)
    return json.loads(out.stdout)[0]["seconds"]


def main():
    frit = pathlib.Path(sys.argv[1]).resolve()
    print("replay of eviction policies, million accesses a second; ratio: frit to libCacheSim")
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for workload, sizes in WORKLOADS:
            blocks = sequences.blocks_of(frit, workload, "100000000", directory)
            path = directory / "blocks.oracleGeneral"
            sequences.write(blocks, path)
            for megabytes in sizes:
                slots = megabytes * 256
                for policy in sequences.POLICIES:
                    pairs = [(ours(frit, workload, policy, slots), theirs(policy, slots, path)) for _ in range(ROUNDS)]
                    mine, its = (len(blocks) / min(p) / 1e6 for p in zip(*pairs))
                    print(f"  {policy:<8} {megabytes:>5} MB   frit {mine:7.2f}   libCacheSim {its:7.2f}   "
                          f"{mine / its:5.2f} ×", flush=True)
                for policy in OWN:
                    mine = len(blocks) / min(ours(frit, workload, policy, slots) for _ in range(ROUNDS)) / 1e6
                    print(f"  {policy:<8} {megabytes:>5} MB   frit {mine:7.2f}   (libCacheSim has none)", flush=True)


if __name__ == "__main__":
    main()
