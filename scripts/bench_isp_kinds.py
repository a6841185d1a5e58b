#!/usr/bin/env python3
"""Each kind of instruction on a mounted file system, beside foreign programs and another build, in one run.

The foreign programs (grep, awk, cksum, in the locale C) read the same file of the mount, which is in the page cache
then, and have to find the same. `--against` adds another build of frit, and the ratio to it; a build from before
there was an act that begins instructions gets none. All take turns in each round, and the medians count.

Example:
  scripts/bench_isp_kinds.py
  scripts/bench_isp_kinds.py --against /tmp/before/frit --rounds 15
"""

import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Begins instructions of an open command file (docs/reference/isp.md).
BEGIN = 0x40044675
ENOTTY = 25
TEXT, TABLE = "text", "table"
LINE = b"error one two three four five six\n"
LINES, RECORDS = 300_000, 400_000
# An instruction is faster or slower with the processors on which its threads happen to run.
SAMPLE_MS = 50

FIELDS = ["awk", "-F,"]
CSV = {"format": "csv", "file": TABLE}
AGGREGATE = (
    "NR > 1 { sum[$1] += $2; n[$1]++ } "
    "END { for (host in sum) printf \"%s %d %.9g\\n\", host, sum[host], sum[host] / n[host] }"
)


def occurrences(answer, _):
    return sum(word["count"] for word in answer["words"])


def positions(answer, _):
    return answer["words"][0]["count"], answer["words"][0]["positions"]


def groups(answer, _):
    texts = lambda group: f"{group['by'][0]} {group['values'][0]:.0f} {group['values'][1]:.9g}"
    return sorted(texts(group) for group in answer["groups"])


def lines(output):
    return output.count(b"\n")


def first_offsets(output):
    """Number of occurrences, and the positions of the first 1000 of `grep -b`."""
    return lines(output), [int(line.split(b":")[0]) for line in output.split(b"\n", 1000)[:1000]]


def as_sorted(output):
    return sorted(output.decode().splitlines())


# Kind, instruction, foreign program, what an answer with its payload has found, and what the output of the program has.
KINDS = [
    ("words, dense", {"words": ["error", "six"], "file": TEXT},
     ["grep", "-o", "-F", "-e", "error", "-e", "six"], occurrences, lines),
    ("words, none", {"words": ["qqqzz"], "file": TEXT}, ["grep", "-o", "-F", "qqqzz"], occurrences, lines),
    ("words, positions", {"words": ["error"], "positions": 1000, "file": TEXT},
     ["grep", "-o", "-b", "-F", "error"], positions, first_offsets),
    ("regex, dense", {"regex": "^err", "file": TEXT}, ["grep", "-E", "^err"], lambda answer, _: answer["count"], lines),
    ("regex, none", {"regex": "t[wq]oo+ ", "file": TEXT},
     ["grep", "-E", "t[wq]oo+ "], lambda answer, _: answer["count"], lines),
    ("filter, none", {"filter": {"regex": "nothing"}, "limit": 10, "file": TEXT},
     ["grep", "-E", "nothing"], lambda _, payload: payload, bytes),
    ("filter, 20,000 lines", {"filter": {"words": ["error"]}, "limit": 20_000, "file": TEXT},
     ["grep", "-m", "20000", "-F", "error"], lambda _, payload: payload, bytes),
    ("select", {"select": ["host", "size"], "where": [["size", ">", 990]], **CSV},
     [*FIELDS, 'NR > 1 && $2 > 990 { print $1 "," $2 }'], lambda _, payload: payload, bytes),
    ("select, expression", {"select": ["host"], "where": [["host", "matches", "7$"]], **CSV},
     [*FIELDS, "NR > 1 && $1 ~ /7$/ { print $1 }"], lambda _, payload: payload, bytes),
    ("aggregate", {"aggregate": [{"sum": "size"}, {"mean": "size"}], "by": ["host"], **CSV},
     [*FIELDS, AGGREGATE], groups, as_sorted),
    ("histogram", {"histogram": {"field": "size", "low": 0, "high": 1000, "bins": 20}, **CSV},
     [*FIELDS, "NR > 1 { bins[int($2 / 50)]++ } END { for (bin in bins) print bin, bins[bin] }"],
     lambda answer, _: sorted(f"{bin} {count}" for bin, count in enumerate(answer["bins"]) if count), as_sorted),
    ("checksum", {"checksum": "sha256", "file": TEXT}, ["cksum", "-a", "sha256", "--untagged"],
     lambda answer, _: answer["checksum"], lambda output: output.decode().split()[0]),
]


@contextlib.contextmanager
def mounted(frit, place):
    """Mounts a new image with both files, and yields the directory and an open command file."""
    place.mkdir()
    image, mount = place / "image", place / "mnt"
    mount.mkdir()
    subprocess.run([frit, "mkfs", image, "--size", "256M"], check=True, capture_output=True)
    subprocess.run([frit, "mount", image, mount], check=True, capture_output=True)
    try:
        (mount / TEXT).write_bytes(LINE * LINES)
        records = (b"h%d,%d,%d\n" % (i % 50, i * 7 % 1000, i) for i in range(RECORDS))
        (mount / TABLE).write_bytes(b"host,size,n\n" + b"".join(records))
        channel = os.open(mount / ".isp", os.O_RDWR)
        try:
            try:
                fcntl.ioctl(channel, BEGIN, bytes(4))
            except OSError as error:
                if error.errno != ENOTTY:
                    raise
            yield mount, channel
        finally:
            os.close(channel)
    finally:
        subprocess.run([frit, "unmount", mount], check=True, capture_output=True)


def ask(channel, instruction):
    """The answer, and its payload."""
    os.write(channel, instruction)
    head, _, payload = os.read(channel, 1 << 20).partition(b"\n")
    answer = json.loads(head)
    if answer["status"] != "ok":
        raise SystemExit(f"{instruction.decode().strip()}: {head.decode()}")
    while len(payload) < answer.get("payload_bytes", 0):
        payload += os.read(channel, 1 << 20)
    return answer, payload


def timed(call, least_ms=0):
    """Milliseconds of a call, as the mean of calls that take at least so long, and the last result."""
    began, calls = time.perf_counter(), 0
    while True:
        result, calls = call(), calls + 1
        if (took := (time.perf_counter() - began) * 1000) >= least_ms:
            return took / calls, result


def measure(kind, channels, mount, rounds):
    """Median milliseconds of each build and of the foreign program, which all have to find the same."""
    name, instruction, foreign, found, expected = kind
    text = json.dumps(instruction).encode() + b"\n"
    path = mount / instruction["file"]
    environment = {**os.environ, "LC_ALL": "C"}
    run = lambda: subprocess.run([*foreign, path], capture_output=True, env=environment).stdout
    times = {who: [] for who in [*channels, "foreign"]}
    for _ in range(rounds):
        took, output = timed(run)
        times["foreign"].append(took)
        for who, channel in channels.items():
            took, answer = timed(lambda: ask(channel, text), SAMPLE_MS)
            times[who].append(took)
            if found(*answer) != expected(output):
                raise SystemExit(f"{name}: {who} and {foreign[0]} do not find the same")
    return {who: statistics.median(all) for who, all in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--frit", default=ROOT / "target/dist/frit", help="the program")
    parser.add_argument("--against", help="another build of it")
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the median counts")
    parser.add_argument("--directory", default="/dev/shm", help="directory on tmpfs for the images")
    args = parser.parse_args()
    builds = {"frit": args.frit, **({"against": args.against} if args.against else {})}
    columns = ["ms", "foreign ms", "foreign / frit", *(["against ms", "frit / against"] if args.against else [])]
    with tempfile.TemporaryDirectory(dir=args.directory) as directory, contextlib.ExitStack() as stack:
        place = pathlib.Path(directory)
        places = {who: stack.enter_context(mounted(frit, place / who)) for who, frit in builds.items()}
        channels = {who: channel for who, (_, channel) in places.items()}
        print("  ".join([f"{'instruction':<22}", f"{'program':<8}", *(f"{column:>14}" for column in columns)]))
        for kind in KINDS:
            found = measure(kind, channels, places["frit"][0], args.rounds)
            cells = [found["frit"], found["foreign"], found["foreign"] / found["frit"]]
            if args.against:
                cells += [found["against"], found["frit"] / found["against"]]
            print("  ".join([f"{kind[0]:<22}", f"{kind[2][0]:<8}", *(f"{cell:14.2f}" for cell in cells)]), flush=True)
    print(f"{LINES * len(LINE) / 1e6:.1f} MB of text, {RECORDS} records; both sides find the same.")


if __name__ == "__main__":
    main()
