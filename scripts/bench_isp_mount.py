#!/usr/bin/env python3
"""Latency of reads and writes of a mount beside in-storage processing, in one run.

fio reads and writes 4 KiB with O_DIRECT at queue depth 1: alone, beside eight queries of 1 GB that are always
outstanding, and beside a foreign program of idle priority on each processor, which shows what of the difference is
the machine's. Requests come through /dev/fuse and through io_uring, which take turns. Of the rounds, the one counts
in which other guests of the machine took the least processor time. Needs fio, and root for io_uring.

Example:
  scripts/bench_isp_mount.py
  scripts/bench_isp_mount.py --rounds 5 --seconds 6 --rates 2000
"""

import argparse
import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from bench_beside import fio, repeated
from bench_requests import PARAMETER, WAYS

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUERIES = 8
PIECE = 1 << 20
INSTRUCTION = b'{"words": ["error", "warn"], "file": "big"}\n'
# Begins instructions of an open command file (docs/reference/isp.md).
BEGIN = 0x40044675
FOREIGN = (
    "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); text = bytes(1 << 28)\n"
    "while True: text.count(b'ab')"
)


@contextlib.contextmanager
def alone(_):
    yield lambda: 0


def beside_queries(place):
    """Keeps queries outstanding. Yields a function that returns the number that have ended."""

    @contextlib.contextmanager
    def client():
        channel = os.open(place / ".isp", os.O_RDWR)
        fcntl.ioctl(channel, BEGIN, bytes(4))

        def query():
            os.write(channel, INSTRUCTION)
            if b'"status":"ok"' not in (answer := os.read(channel, 1 << 16)):
                raise SystemExit(f"a query failed: {answer.decode().strip()}")

        try:
            yield query
        finally:
            os.close(channel)

    return repeated(client, QUERIES)


@contextlib.contextmanager
def beside_foreign(_):
    programs = [subprocess.Popen([sys.executable, "-c", FOREIGN]) for _ in range(os.cpu_count())]
    try:
        yield lambda: 0
    finally:
        for program in programs:
            program.kill()
            program.wait()


LOADS = {"alone": alone, "queries": beside_queries, "foreign": beside_foreign}


def stolen():
    """Processor time that others took, and all time."""
    ticks = [int(n) for n in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return ticks[7], sum(ticks)


def requests(place, kind, rate, seconds):
    """Percentiles of fio in µs."""
    options = [f"--filename={place}/small", "--size=64M", "--ioengine=psync", "--direct=1"]
    return fio(options, kind, rate, seconds)


def measure(place, load, kind, rate, seconds, size):
    """Stolen time in percent, percentiles, and GB/s of the queries."""
    with LOADS[load](place) as done:
        time.sleep(0.3)
        before, queries, began = stolen(), done(), time.perf_counter()
        latency = requests(place, kind, rate, seconds)
        after, queries, took = stolen(), done() - queries, time.perf_counter() - began
    return 100 * (after[0] - before[0]) / (after[1] - before[1]), latency, queries * size / took / 1e9


def mounted(frit, root, way, word, size, stack):
    """A mount with a file of `size` random bytes, which `stack` unmounts."""
    image, place = root / f"{word}.img", root / word
    place.mkdir()
    subprocess.run([frit, "mkfs", image, "--size", str(size + (256 << 20))], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(
        [frit, "mount", image, place, f"--io-uring={word}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        print(f"skipped: {way}: {done.stderr.strip()}")
        return None
    stack.callback(subprocess.run, [frit, "unmount", place], stdout=subprocess.DEVNULL)
    piece = os.urandom(PIECE)
    with open(place / "big", "wb") as file:
        for _ in range(size // PIECE):
            file.write(piece)
    requests(place, "randwrite", 0, 1)
    return place


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frit", default=ROOT / "target/release/frit", help="the program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each run of fio")
    parser.add_argument("--rates", default="2000,0", help="requests a second; 0: without a pause")
    parser.add_argument("--size", type=int, default=1000, help="MiB that a query reads")
    args = parser.parse_args()
    size = args.size * PIECE
    with contextlib.ExitStack() as stack:
        root = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        # Without root, mounts through io_uring say why they fail.
        with contextlib.suppress(OSError):
            stack.callback(PARAMETER.write_text, PARAMETER.read_text())
            PARAMETER.write_text("Y")
        places = {way: mounted(args.frit, root, way, word, size, stack) for way, word in WAYS.items()}
        print("µs; p99 / alone: the ratio; stolen: processor time that others took\n")
        print("| requests | through | load | p50 | p99 | p99.9 | p99 / alone | queries, GB/s | stolen, % |")
        print("|---|---|---|---|---|---|---|---|---|")
        for rate in (int(n) for n in args.rates.split(",")):
            for kind in ("randread", "randwrite"):
                cells = [(way, place, load) for way, place in places.items() if place for load in LOADS]
                rounds = [
                    [measure(place, load, kind, rate, args.seconds, size) for _, place, load in cells]
                    for _ in range(args.rounds)
                ]
                for number, (way, _, load) in enumerate(cells):
                    taken, latency, speed = min(results[number] for results in rounds)
                    base = latency[1] if load == "alone" else base
                    what = f"{rate} {kind[4:]}s/s" if rate else f"{kind[4:]}s without a pause"
                    cell = " | ".join(f"{n:.0f}" for n in latency)
                    rate_of_queries = f"{speed:.1f}" if speed else ""
                    print(
                        f"| {what} | {way} | {load} | {cell} | {latency[1] / base:.2f} | {rate_of_queries} | {taken:.1f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
