#!/usr/bin/env python3
"""Word query on a mounted file system: in-storage processing beside software, in one run.

Methods: the engine of the mount (frit isp query), the software of the ISPFS paper (scripts/models/word_query.c),
GNU grep and ripgrep on the mount, and sequential reads of memory as the limit. Counts of the engine have to be
those of the paper's software. The image is on tmpfs. It needs root or fusermount3, a C compiler, and memory for
twice the largest file.

Example:
  scripts/bench_isp.py                    100 KB to 1 GB, 4 words
  scripts/bench_isp.py --sizes 1M,100M --rounds 5
"""

import argparse
import json
import pathlib
import random
import resource
import shutil
import string
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = ["error", "warn", "fatal", "panic"]
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}


def size(text):
    return int(float(text[:-1]) * UNITS[text[-1]]) if text[-1] in UNITS else int(text)


def write_text(path, size, every):
    """A text of random words, of which one in `every` is searched for."""
    draw = random.Random(size)
    other = lambda: "".join(draw.choices(string.ascii_lowercase, k=6))
    word = lambda: draw.choice(WORDS) if draw.random() * every < 1 else other()
    block = ("\n".join(" ".join(word() for _ in range(12)) for _ in range(12_000)) + "\n").encode()
    with open(path, "wb") as file:
        left = size
        while left > 0:
            left -= file.write(block[:left])


def run(command):
    """Output, seconds, and processor seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout, took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best(command, rounds):
    return min((run(command) for _ in range(rounds)), key=lambda result: result[1])


def drop_caches():
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    except OSError:
        return False


def measure(frit, query, file, bytes, rounds):
    """A row of the table; times are in seconds."""
    numbers = lambda text: [float(n) for n in text.split()]
    asked = [frit, "isp", "query", file, *WORDS, "--json"]
    cold = "-"
    if drop_caches():
        cold = f"{bytes / json.loads(run(asked)[0])['wall_ns'] * 1e3:.0f}"
    results = [run(asked) for _ in range(rounds)]
    engine = min((json.loads(text) for text, _, _ in results), key=lambda result: result["wall_ns"])
    whole = min(took for _, took, _ in results)
    software = numbers(best([query, file, *WORDS], 1)[0])
    counts = [word["count"] for word in engine["words"]]
    if counts != software[:len(WORDS)]:
        raise SystemExit(f"{file}: the engine counts {counts}, the software {software[:len(WORDS)]}")
    rate = lambda seconds: bytes / 1e6 / seconds
    greps = {}
    patterns = [part for word in WORDS for part in ("-e", word)]
    for name, command in [("grep", ["grep", "-c", "-F"]), ("rg", ["rg", "-c", "-F"])]:
        if shutil.which(command[0]):
            greps[name] = rate(best([*command, *patterns, file], rounds)[1])
    base, isp = rate(software[-1]), rate(engine["wall_ns"] / 1e9)
    return {
        "bytes": bytes, "found": sum(counts), "isp": isp, "isp cold": cold, "with the program": rate(whole),
        "software": base, "x software": isp / base, **greps, "x rg": isp / greps["rg"] if "rg" in greps else "-",
        "requests": f"{engine['caller_requests']} / {int(software[-2])}",
        "cpu ms: caller": engine["caller_cpu_ns"] / 1e6, "engine": engine["cpu_ns"] / 1e6,
        "cpu ms: software": software[-1] * 1e3,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="100K,1M,10M,100M,1G", help="sizes of the files")
    parser.add_argument("--every", type=int, default=200, help="one of so many words is searched for")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts")
    parser.add_argument("--directory", default="/dev/shm", help="directory on tmpfs for the image")
    parser.add_argument("--frit", default=ROOT / "target/release/frit", help="the program")
    args = parser.parse_args()
    sizes = [size(text) for text in args.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        place = pathlib.Path(directory)
        query = place / "word_query"
        subprocess.run(["cc", "-O2", "-pthread", "-o", query, ROOT / "scripts/models/word_query.c"], check=True)
        limits = {}
        for pages in ("huge", "small"):
            memory = [float(n) for n in run([query, "--memory", str(1 << 30), pages])[0].split()]
            limits[pages] = memory[0] / 1e6 / memory[1]
        (place / "mnt").mkdir()
        run([args.frit, "mkfs", place / "img", "--size", f"{sum(sizes) // 2**20 * 2 + 64}M"])
        mount = subprocess.Popen([args.frit, "mount", place / "img", place / "mnt"], stdout=subprocess.PIPE, text=True)
        rows = []
        try:
            mount.stdout.readline()
            for bytes in sizes:
                file = place / "mnt" / f"{bytes}.txt"
                write_text(file, bytes, args.every)
                rows.append(measure(args.frit, query, file, bytes, args.rounds))
                file.unlink()
        finally:
            subprocess.run([args.frit, "unmount", place / "mnt"], capture_output=True)
            mount.wait(30)
    number = lambda value: f"{value:.1f}" if value < 1000 and value != int(value) else f"{value:.0f}"
    cell = lambda value: value if isinstance(value, str) else number(value)
    table = [list(rows[0])] + [[cell(value) for value in row.values()] for row in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(value.rjust(width) for value, width in zip(row, widths)))
    print(f"MB/s, 10^6 bytes; the best of {args.rounds} rounds. Sequential reads of memory with two threads: "
          f"{limits['huge']:.0f} with pages of 2 MiB, {limits['small']:.0f} with pages of 4 KiB")
    print("engine / memory, largest file: "
          + ", ".join(f"{rows[-1]['isp'] / limit:.2f} ({pages} pages)" for pages, limit in limits.items()))


if __name__ == "__main__":
    main()
