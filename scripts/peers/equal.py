"""Hit counts of frit's policies equal libCacheSim's, exactly, on the same blocks at several sizes.

    equal.py FRIT
"""

import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import sequences

# Requests taken of each workload.
LIMIT = "100000"

GENERATED = [
    "gen:zipf,count=100k,size=4K,span=256M,seed=1",
    "gen:zipf,count=50k,size=16K,span=1G,seed=2,theta=0.8",
    "gen:uniform,count=100k,size=4K,span=64M,seed=3",
    "gen:sequential,count=100k,size=4K,span=100M",
]
RECORDED = ["pgbench.csv.zst", "mail.csv.zst", "sqlite.csv.zst", "rocksdb.csv.zst"]
PUBLIC = ["msr_web_3.csv.zst", "cloudPhysicsIO.vscsi.zst", "Financial1-snippet.spc.zst", "diskmon_mayun2.txt.zst"]


def workloads():
    yield from GENERATED
    yield str(sequences.ROOT / "traces" / "mail-60k.csv.zst")
    for folder, names in [("recorded", RECORDED), ("public", PUBLIC)]:
        for name in names:
            path = sequences.SHARED / folder / name
            if path.exists():
                yield str(path)
            else:
                print(f"  {name}: skipped, it is not at {path.parent}")


def compare(frit, workload):
    """Returns the counts of one workload that were compared and that differ, and the lines to print."""
    compared = different = 0
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        blocks = sequences.blocks_of(frit, workload, LIMIT, directory)
        path = directory / "blocks.oracleGeneral"
        sequences.write(blocks, path)
        footprint = len(set(blocks.tolist()))
        # From a cache that almost nothing fits to one that almost everything does; S3-FIFO needs 20 blocks.
        slots = sorted({max(32, round(footprint * share)) for share in (0.003, 0.03, 0.2, 0.7)})
        out = subprocess.run(
            [frit, "cache", workload, "--json", "--devices", "concat", "--limit", LIMIT,
             "--policy", ",".join(sequences.POLICIES), "--size", ",".join(str(s * 4096) for s in slots)],
            check=True, capture_output=True)
        for row in json.loads(out.stdout):
            assert row["accesses"] == len(blocks), f"{workload}: frit sees {row['accesses']} of {len(blocks)} blocks"
            cache = sequences.POLICIES[row["policy"]](row["size"] // 4096, hashpower=18)
            ratio, _ = cache.process_trace(sequences.reader(path))
            hits = len(blocks) - round(ratio * len(blocks))
            compared += 1
            if hits != row["hits"]:
                different += 1
                lines.append(f"  {workload}, {row['policy']}, {row['size'] // 4096} blocks: "
                             f"frit {row['hits']} hits, libCacheSim {hits}")
        lines.append(f"  {pathlib.Path(workload).name}: {len(blocks)} accesses to {footprint} blocks, at {slots}")
    return compared, different, lines


def main():
    frit = pathlib.Path(sys.argv[1]).resolve()
    compared = different = 0
    # libCacheSim holds the interpreter's lock, so that workloads need processes.
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for some, wrong, lines in pool.map(compare, itertools.repeat(frit), workloads()):
            compared += some
            different += wrong
            print("\n".join(lines), flush=True)
    print(f"{compared} hit counts compared with libCacheSim's, {different} differ")
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
