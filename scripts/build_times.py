#!/usr/bin/env python3
"""What a build costs: from nothing, and after an edit.

  scripts/build_times.py                     all parts, about half an hour on two processors
  scripts/build_times.py demo edit           some of demo, build, test, edit
  scripts/build_times.py --record demo       adds the rows to docs/results/build.csv as well
  scripts/build_times.py gate -- COMMAND     runs a build of the tests, and compares its cost with the budget

The parts work in a clone with an empty package cache of its own, so downloads are part of the wall time. The machine
should have no other work.

Wall time depends on what else the machine does, and so does processor time, because processors share caches and
execution units. A thread therefore measures a fixed loop all along. *Reference seconds* are the processor time of the
build, divided by how much longer the loop took than at a score of 1. Three builds of
the tests on a quiet machine took 510, 533 and 539 of them.

`make test` runs the gate around the build of its tests. It compares only a build from nothing, as in a new clone, with
docs/results/build-budget.toml, and fails if the build costs a tenth more than the budget.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "docs/results/build-budget.toml"
TABLE = ROOT / "docs/results/build.csv"
# Processor time of one pass of the loop at a score of 1: a fixed value. A 2-core AMD EPYC virtual machine has 0.75 to
# 0.8 while both of its processors build.
REFERENCE_PASS_S = 0.0025
# Time between two passes, so that they take less than a hundredth of a processor.
PAUSE_S = 0.4
# A build that costs this many times its budget fails.
TOLERANCE = 1.10
PARTS = ("demo", "build", "test", "edit")
COLUMNS = ("commit", "part", "wall_s", "cpu_s", "reference_s", "score", "processors", "program_bytes", "dearest")


def one_pass():
    """The fixed loop: hashes, and a table of words as compilers have them."""
    table, block = {}, b"frit" * 256
    for i in range(10_000):
        block_hash = hash((i, i * 2654435761 % 4096))
        table[block_hash & 1023] = table.get(block_hash & 511, 0) + i
    digest = hashlib.sha256()
    for _ in range(2400):
        digest.update(block)
    return digest.digest()[0] + len(table)


class Speed:
    """Measures the loop until it is stopped."""

    def __init__(self):
        self.passes = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopped.is_set():
            begin = time.thread_time()
            one_pass()
            self.passes.append(time.thread_time() - begin)
            self.stopped.wait(PAUSE_S)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def score(self):
        """How fast this machine is: 1 for the reference machine, more for a faster one."""
        return REFERENCE_PASS_S / statistics.median(self.passes)


class Cost:
    """Wall time, processor time and reference seconds of a command."""

    def __init__(self, command, **how):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        with Speed() as speed:
            self.status = subprocess.run(command, check=False, **how).returncode
        self.wall = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.score = speed.score()
        self.reference = self.cpu * self.score


def gate(command):
    """Runs the build of the tests. Returns its exit status, or 1 if a build from nothing is above its budget."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/deps"
    from_nothing = not any(target.glob("libfrit_core-*.rlib"))
    cost = Cost(command)
    if cost.status != 0:
        return cost.status
    budget = tomllib.loads(BUDGET.read_text())["tests"]
    spent = f"{cost.reference:.0f} reference seconds ({cost.cpu:.0f} s of processors, {cost.wall:.0f} s)"
    if not from_nothing:
        print(f"build of the tests: {spent}; only a build from nothing is compared with its budget")
        return 0
    print(f"build of the tests from nothing: {spent}; the budget is {budget['reference_s']}")
    if cost.reference > budget["reference_s"] * TOLERANCE:
        print(
            f"build_times: the build costs more than {TOLERANCE:.2f} times its budget. Find what became dear with\n"
            "  cargo test --workspace --no-run --timings\n"
            f"or raise reference_s in {BUDGET.relative_to(ROOT)}, with the reason in the same commit",
            file=sys.stderr,
        )
        return 1
    return 0


def dearest(clone):
    """The ten crates that took longest in the last build with --timings, with their seconds."""
    pages = sorted((clone / "target/cargo-timings").glob("cargo-timing-2*.html"))
    found = re.search(r"const UNIT_DATA = (\[.*?\]);\n", pages[-1].read_text(), re.S) if pages else None
    if not found:
        return ""
    seconds = {}
    for unit in json.loads(found[1]):
        seconds[unit["name"]] = seconds.get(unit["name"], 0) + unit["duration"]
    first = sorted(seconds, key=seconds.get, reverse=True)[:10]
    return " ".join(f"{name}:{seconds[name]:.0f}" for name in first)


def measure(clone, name, command):
    """Runs one part, and prints and returns its row. Ends the program if it fails."""
    log = clone.parent / "log"
    env = os.environ | {"CARGO_HOME": str(clone.parent / "cargo"), "BUILD_FLAGS": "--timings"}
    env.pop("CARGO_TARGET_DIR", None)
    with log.open("w") as out:
        cost = Cost(command, shell=True, cwd=clone, env=env, stdout=out, stderr=subprocess.STDOUT)
    if cost.status != 0:
        print(log.read_text()[-3000:], file=sys.stderr)
        sys.exit(f"build_times: {name} failed ({cost.status}): {command}")
    program = clone / "target/release/frit"
    row = {
        "commit": subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=clone, text=True).strip(),
        "part": name,
        "wall_s": round(cost.wall),
        "cpu_s": round(cost.cpu),
        "reference_s": round(cost.reference),
        "score": round(cost.score, 2),
        "processors": os.cpu_count(),
        "program_bytes": program.stat().st_size if program.exists() else "",
        "dearest": dearest(clone) if name in ("demo", "build") else "",
    }
    wall = f"{row['wall_s'] // 60}:{row['wall_s'] % 60:02}"
    size = f"{row['program_bytes'] / 1e6:.1f} MB" if row["program_bytes"] else ""
    print(f"{name:<26} {wall:>7} {row['cpu_s']:>7} {row['reference_s']:>9} {size:>9}", flush=True)
    if row["dearest"]:
        print(f"  {row['dearest']}", flush=True)
    return row


def parts(names, record):
    """Measures parts in a clean clone."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="frit-build-times-") as room:
        clone = Path(room) / "frit"
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        # Recordings beside the tree are used by the tests where they exist.
        if (ROOT.parent / "shared").exists():
            (Path(room) / "shared").symlink_to((ROOT.parent / "shared").resolve())
        print(f"{'part':<26} {'wall':>7} {'cpu s':>7} {'ref. s':>9} {'program':>9}")
        if "demo" in names:
            rows.append(measure(clone, "demo", "make demo"))
        if "build" in names:
            shutil.rmtree(clone / "target", ignore_errors=True)
            rows.append(measure(clone, "build", "make build"))
        if "test" in names:
            rows.append(measure(clone, "test", "make test"))
        if "edit" in names:
            layer, whole = "cargo test --locked -p frit-layer --lib -- hfsl::", "cargo test --workspace --locked"
            measure(clone, "tests, first time", f"{layer} && {whole} --no-run")
            edited = clone / "crates/layer/src/hfsl/mod.rs"
            edited.write_text(edited.read_text() + "// An edit.\n")
            rows.append(measure(clone, "edit, layer tested", layer))
            rows.append(measure(clone, "edit, whole tested", whole))
    if record:
        new = not TABLE.exists()
        with TABLE.open("a", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)


def main():
    if sys.argv[1:3] == ["gate", "--"] and len(sys.argv) > 3:
        return gate(sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="demo, build, test, edit; all without one")
    parser.add_argument("--record", action="store_true", help="add the rows to docs/results/build.csv")
    asked = parser.parse_args()
    unknown = [p for p in asked.parts if p not in PARTS]
    if unknown:
        parser.error(f"no part '{unknown[0]}'; there are {', '.join(PARTS)}, and gate -- COMMAND")
    parts(asked.parts or PARTS, asked.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
