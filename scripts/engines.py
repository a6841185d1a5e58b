#!/usr/bin/env python3
"""Compares the in-order engine with the event engine on stacks with cleaning.

Both engines compute exact times of devices that execute commands in order of emission. They share
no code for queues, buses and dependencies, so that each is a check of the other. The table has the
differences of mean and p99 of reads and writes, and the speed of both engines.

  scripts/engines.py [--quick] [--limit PERCENT]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

FRIT = os.environ.get("FRIT", "target/release/frit")
CHIPS = "media.nand.chips_per_channel"
# Stack, overrides, workload, warm-up. The workloads are long enough for cleaning to begin.
SMALL = "gen:uniform,count={count},size=4K,align=4K,read={read}"
CASES = [
    ("modern", [], "gen:uniform,count={count},size=16K,align=16K,span=1G,read=0.5", "steady"),
    ("no-pcm-small", [], SMALL, "steady"),
    ("hfsl-small", [], SMALL, "steady"),
    ("hfsl-both", ["media.nand.blocks_per_plane=512", "media.pcm.chip_bytes=8M"], SMALL, "steady"),
    ("nand-only-bench", ["media.nand.blocks_per_plane=512"], SMALL, "steady"),
    ("nand-only-bench", ["media.nand.blocks_per_plane=2048", "media.nand.channels=1", CHIPS + "=4"], SMALL, "steady"),
    ("nand-only-bench", ["media.nand.blocks_per_plane=1024", "media.nand.channels=1", CHIPS + "=8"], SMALL, "steady"),
    ("nand-only-bench", ["media.nand.blocks_per_plane=1024", CHIPS + "=1"], SMALL, "steady"),
    ("nand-only-bench", ["media.nand.blocks_per_plane=512", "hfsl.copyback=true"], SMALL, "steady"),
    ("ntl-small", [], SMALL, "fill"),
    ("halo-small", [], SMALL, "none"),
    ("disk-alone", [], SMALL, "none"),
]


def run(stack, sets, workload, warm, depth, kind):
    """Returns the report of one run."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [FRIT, "run", stack, workload, "--wrap", "--warm", warm, "--qd", str(depth), "-q", "--json", out.name]
        for setting in [*sets, f"engine.kind={kind}"]:
            command += ["--set", setting]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        report = json.load(open(out.name))
    return report[0] if isinstance(report, list) else report


def figures(report):
    """Returns mean and p99 of each class."""
    found = {}
    for entry in report["latency"]:
        response = entry["response"]
        if response["count"]:
            found[entry["class"], "mean"] = response["mean_ns"]
            found[entry["class"], "p99"] = response["p99_ns"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests and depths")
    parser.add_argument("--limit", type=float, default=2.0, help="allowed difference in percent")
    parser.add_argument("--against", default="event", help="the other engine")
    args = parser.parse_args()
    depths = [1, 32] if args.quick else [1, 4, 8, 32, 128]
    print(f"{'stack':52} {'read':>4} {'QD':>4}  {'Δmean':>7} {'Δp99':>7}  {'in-order':>9} {args.against:>9}")
    worst = 0.0
    for stack, sets, workload, warm in CASES:
        name = ",".join([stack] + [s.split(".")[-1] for s in sets])
        count = 4000 if "disk" in stack else 30_000 if args.quick else 100_000
        for read in ["0.5", "0"]:
            for depth in depths:
                given = workload.format(count=count, read=read).replace("read=0.5", f"read={read}")
                reports = [run(stack, sets, given, warm, depth, kind) for kind in ("in-order", args.against)]
                ours, theirs = (figures(r) for r in reports)
                off = {k: 100 * (ours[k] / max(theirs[k], 1) - 1) for k in theirs}
                pick = {w: max((v for k, v in off.items() if k[1] == w), key=abs, default=0.0) for w in ("mean", "p99")}
                speeds = [1e6 / r["software"]["ns_per_request"] for r in reports]
                worst = max([worst, *(abs(v) for v in pick.values())])
                mark = " <" if max(abs(v) for v in pick.values()) > args.limit else ""
                print(
                    f"{name:52} {read:>4} {depth:>4}  {pick['mean']:>+6.2f}% {pick['p99']:>+6.2f}%"
                    f"  {speeds[0]:>7.0f} k {speeds[1]:>7.0f} k{mark}",
                    flush=True,
                )
    print(f"largest difference: {worst:.2f} %")
    return 0 if worst <= args.limit else 1


if __name__ == "__main__":
    sys.exit(main())
