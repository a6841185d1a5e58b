#!/usr/bin/env python3
"""Fits a line to the service times of reads in a BIOTracer trace, independently of frit.

The script shares no code with the program. It reads the trace itself, takes the first part of the reads and
writes, and computes

- the median time of the reads of each size, and the weighted least-squares line through them: on a drive that gets
  one request at a time, time = overhead + bytes / rate;
- the root mean square and the demerit figure of constant latencies (the means of the first part) on the rest.

It compares them with the JSON of `frit calibrate`: medians and constant latencies have to be equal, and the line
through the medians of the calibrated drive has to be near that of the trace.

Example:
  frit calibrate tlc-pages-2018 trace.txt --json > fit.json
  scripts/models/service_times.py trace.txt fit.json --tolerance 0.1
"""

import argparse
import json
import math
import sys


def requests(path, limit):
    """Returns operation, bytes, submission and end of each request, in exact nanoseconds."""
    found = []
    with open(path, encoding="ascii") as trace:
        for line in trace:
            fields = line.split()
            if len(fields) != 8:
                continue
            submitted, finished = (nanoseconds(t) for t in fields[6:8])
            op = "write" if int(fields[3]) & 1 else "read"
            found.append((op, int(fields[2]), submitted, finished))
            if len(found) == limit:
                break
    return found


def nanoseconds(text):
    seconds, _, decimals = text.partition(".")
    return int(seconds) * 10**9 + int(decimals.ljust(9, "0")[:9])


def median(times):
    return sorted(times)[len(times) // 2]


def line(points):
    """Returns intercept and slope of the least-squares line through (x, y, weight)."""
    weight = sum(w for _, _, w in points)
    x_mean = sum(x * w for x, _, w in points) / weight
    y_mean = sum(y * w for _, y, w in points) / weight
    across = sum(w * (x - x_mean) * (y - y_mean) for x, y, w in points)
    along = sum(w * (x - x_mean) ** 2 for x, _, w in points)
    return y_mean - across / along * x_mean, across / along


def constant_errors(first, rest):
    """Returns RMS and demerit of constant latencies, in µs."""
    means = {}
    for op in ("read", "write"):
        times = [end - begin for o, _, begin, end in first if o == op]
        means[op] = round(sum(times) / len(times))
    pairs = [(end - begin, means[op]) for op, _, begin, end in rest]
    rms = math.sqrt(sum((a - b) ** 2 for a, b in pairs) / len(pairs)) / 1e3
    sides = sorted(a for a, _ in pairs), sorted(b for _, b in pairs)
    demerit = math.sqrt(sum((a - b) ** 2 for a, b in zip(*sides)) / len(pairs)) / 1e3
    return rms, demerit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", help="BIOTracer trace, not compressed")
    parser.add_argument("fit", help="JSON of frit calibrate")
    parser.add_argument("--limit", type=int, help="requests of the trace that were used")
    parser.add_argument("--tolerance", type=float, default=0.1, help="relative difference of the lines")
    args = parser.parse_args()
    with open(args.fit, encoding="utf-8") as file:
        fit = json.load(file)
    everything = requests(args.trace, args.limit)
    count = fit["fitted_part"]["requests"]
    first, rest = everything[:count], everything[count:]
    differ = 0

    def compare(name, ours, theirs, tolerance):
        nonlocal differ
        near = abs(ours - theirs) <= tolerance * abs(theirs)
        differ += not near
        print(f"{name}: trace {theirs:.4f}, frit {ours:.4f}{'' if near else '  DIFFERS'}")

    sizes = {}
    for op, length, begin, end in first:
        if op == "read":
            sizes.setdefault(length, []).append(end - begin)
    measured, calibrated = [], []
    for row in fit["sizes"]:
        if row["op"] != "read":
            continue
        times = sizes[row["bytes"]]
        if len(times) != row["requests"] or abs(median(times) / 1e3 - row["measured_us"]) > 1e-6:
            differ += 1
            print(f"reads of {row['bytes']} bytes: {len(times)}, median {median(times) / 1e3} us  DIFFERS from {row}")
        measured.append((row["bytes"], median(times) / 1e3, len(times)))
        calibrated.append((row["bytes"], row["calibrated_us"], len(times)))
    print(f"{len(measured)} sizes of reads")
    (overhead, slope), (our_overhead, our_slope) = line(measured), line(calibrated)
    compare("overhead of a read, us", our_overhead, overhead, args.tolerance)
    compare("time of a byte, ns", our_slope * 1e3, slope * 1e3, args.tolerance)
    rms, demerit = constant_errors(first, rest)
    ours = next(s for s in fit["held_out_part"]["scores"] if s["predictor"] == "constant")
    compare("RMS of constant latencies, held out, us", ours["rms_us"], rms, 1e-9)
    compare("demerit of constant latencies, held out, us", ours["demerit_us"], demerit, 1e-6)
    print(f"{differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
