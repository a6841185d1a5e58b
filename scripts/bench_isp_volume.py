#!/usr/bin/env python3
"""Word query on served block volumes: in-storage processing beside nbdcopy with grep and ripgrep, in one run.

For each stack, a volume on tmpfs is filled with text and served. Methods: the engine of the server (frit ctl
query, the whole volume), nbdcopy to a pipe with GNU grep or ripgrep behind it, and nbdcopy to /dev/null as the
limit of the transfer. Counts have to be equal. Then fio reads and writes 4 KiB at queue depth 1, without queries
and beside a client that repeats queries. It needs nbdcopy, fio with NBD, grep and ripgrep.

Example:
  scripts/bench_isp_volume.py
  scripts/bench_isp_volume.py --stacks HFSL --seconds 10
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from bench_beside import fio, repeated
from bench_isp import write_text

ROOT = pathlib.Path(__file__).resolve().parent.parent
STACKS = {"HFSL": ["hfsl-small"], "HALO": ["halo-small", "--set", "media.disk.bytes=256M"], "FTL": ["ftl-small"]}
WORD = "error"


def run(*command):
    began = time.perf_counter()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout, time.perf_counter() - began


class Served:
    """A volume of a stack on tmpfs, with text in all of it, and its server."""

    def __init__(self, frit, root, stack):
        self.frit, self.volume = frit, root / "volume"
        run(frit, "create", self.volume, "--stack", *stack)
        listens = root / "nbd.sock"
        self.server = subprocess.Popen(
            [frit, "serve", self.volume, "--nbd", f"unix:{listens}"], stdout=subprocess.DEVNULL
        )
        while not (self.volume / "ctl.sock").exists():
            time.sleep(0.05)
        self.uri = f"nbd+unix:///?socket={listens}"
        self.bytes = int(json.loads(run("nbdinfo", "--json", self.uri)[0])["exports"][0]["export-size"])
        text = root / "text"
        write_text(text, self.bytes, 200)
        run("nbdcopy", "--flush", text, self.uri)
        text.unlink()

    def query(self):
        out, took = run(self.frit, "ctl", self.volume, "query", WORD, "--json")
        result = json.loads(out)
        return result["words"][0]["count"], result["wall_ns"] / 1e9, took

    def piped(self, program):
        """Count of a program behind nbdcopy."""
        out, took = run("sh", "-c", f"nbdcopy '{self.uri}' - | {program} | wc -l")
        return int(out), took

    def end(self):
        self.server.terminate()
        self.server.wait()


def requests(uri, kind, rate, seconds):
    """Percentiles of fio in µs."""
    return fio(["--ioengine=nbd", f"--uri={uri}"], kind, rate, seconds)


def beside_queries(served, measure):
    """Result of a measurement while one client repeats queries, and the speed of the queries in MB/s."""
    request = json.dumps({"v": 1, "do": "isp", "command": {"words": [WORD]}}).encode() + b"\n"

    @contextlib.contextmanager
    def client():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(served.volume / "ctl.sock"))
            answers = connection.makefile("rb")

            def query():
                connection.sendall(request)
                if b'"status":"ok"' not in (answer := answers.readline()):
                    raise SystemExit(f"a query failed: {answer.decode().strip()}")

            yield query

    with repeated(client) as done:
        began = time.perf_counter()
        result = measure()
        speed = done() * served.bytes / 1e6 / (time.perf_counter() - began)
    return result, speed


def measure_stack(name, stack, frit, rounds, seconds):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        served = Served(frit, pathlib.Path(root), stack)
        try:
            mb = served.bytes / 1e6
            queries = [served.query() for _ in range(rounds)]
            engine, program = min(q[1] for q in queries), min(q[2] for q in queries)
            piped = {p: [served.piped(c) for _ in range(rounds)] for p, c in PIPED.items()}
            counts = {queries[0][0]} | {count for all in piped.values() for count, _ in all}
            if len(counts) != 1:
                raise SystemExit(f"{name}: the counts differ: {counts}")
            copy = min(run("nbdcopy", served.uri, "null:")[1] for _ in range(rounds))
            speeds = [mb / engine, mb / program, *(mb / min(t for _, t in all) for all in piped.values()), mb / copy]
            print(f"| {name} | {mb:.0f} | " + " | ".join(f"{speed:.0f}" for speed in speeds) + " |")
            for kind, rate in [("randread", 2000), ("randwrite", 2000), ("randread", 0), ("randwrite", 0)]:
                test = lambda: requests(served.uri, kind, rate, seconds)
                idle, (busy, speed) = test(), beside_queries(served, test)
                row = " | ".join(f"{a:.0f} | {b:.0f}" for a, b in zip(idle, busy))
                print(f"  {name} {rate or 'unlimited'} {kind}: p50, p99, p99.9 idle | beside: {row} | {speed:.0f} MB/s")
        finally:
            served.end()


PIPED = {"grep": f"grep -a -o -F {WORD}", "ripgrep": f"rg -a -o -N -I --no-unicode -F {WORD}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frit", default=str(ROOT / "target/release/frit"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each run of fio")
    parser.add_argument("--stacks", nargs="*", default=list(STACKS), choices=list(STACKS), metavar="STACK", help=f"of {', '.join(STACKS)}")
    args = parser.parse_args()
    missing = [program for program in ["nbdcopy", "nbdinfo", "fio", "grep", "rg"] if not shutil.which(program)]
    if missing:
        raise SystemExit(f"missing programs: {', '.join(missing)}")
    print("MB/s: stack, MB, engine, frit ctl query, nbdcopy | grep, nbdcopy | ripgrep, nbdcopy alone")
    for name in args.stacks:
        measure_stack(name, STACKS[name], args.frit, args.rounds, args.seconds)


if __name__ == "__main__":
    main()
