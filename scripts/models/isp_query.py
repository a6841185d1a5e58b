#!/usr/bin/env python3
"""An independent model of the word query of ISPFS, written from the paper and not from the program.

  scripts/models/isp_query.py 100K 1M 10M              times of the engine, of the program and of software
  scripts/models/isp_query.py 1M --engine-ns 20 --json
  scripts/models/isp_query.py 1M --buffers 1

Two controllers read rows of 64 B in turn: two chips of 16 bits make 32 bits at both edges of 250 MHz, and a chip gives
150 MB/s (section 4). Each controller has a unit of the engine, with buffers for rows. Rows are issued in the order of
the file. The link (FMC, 100 MHz, simplex) carries bursts of 64 B: four clocks and 2.5 ns a byte. The program writes an
instruction, polls the status register and reads the results (section 3.4); software reads blocks over the link, and
compares them. Both look up the name of the file, whose 32 bytes in the directory are a burst over the link. The file is
one extent that begins at the first controller, and its inode has four rows.

A test (crates/cli/tests/all/isp_model.rs) compares the results with those of `frit fs-sim --isp`.
"""

import argparse
import json

ROW = 64
CHIP_BYTES_S = 150_000_000
BUS_NS_PER_BYTE = 0.5
LINK_CLOCKS, LINK_CLOCK_NS, LINK_NS_PER_BYTE = 4, 10, 2.5
INODE_ROWS = 4
INSTRUCTION, STATUS, RESULTS = 128, 4, 64
NAME = 32
COMMAND_NS = 2_000_000
BLOCK = 128 << 10


def row_ns(size):
    """Returns the time of a row, or of a part of one: the cells load a whole row, the bus carries the bytes."""
    whole = round(1e9 * ROW / (2 * CHIP_BYTES_S))
    return whole - round(ROW * BUS_NS_PER_BYTE) + round(size * BUS_NS_PER_BYTE + 1e-9)


def link_ns(size):
    return round(LINK_CLOCKS * LINK_CLOCK_NS + size * LINK_NS_PER_BYTE)


def lookup_ns():
    return row_ns(NAME) + link_ns(ROW)


def engine_ns(size, a):
    """Returns the time from the start register to completion."""
    start = a.start_ns + INODE_ROWS // 2 * row_ns(ROW)
    memory, engine = [start, start], [start, start]
    ends = ([], [])
    issued = start
    for number in range((size + ROW - 1) // ROW):
        part = min(ROW, size - number * ROW)
        side = number % 2
        if len(ends[side]) >= a.buffers:
            issued = max(issued, ends[side][-a.buffers])
        memory[side] = max(memory[side], issued) + row_ns(part)
        engine[side] = max(engine[side], memory[side]) + part * a.engine_ns
        ends[side].append(engine[side])
    return max(engine)


def program(took, a):
    """Returns time, calls and bytes over the link of the program that waits for the engine."""
    now = lookup_ns() + COMMAND_NS + INSTRUCTION // ROW * link_ns(ROW)
    complete = now + took
    polls = 0
    while True:
        now += link_ns(STATUS)
        polls += 1
        if now >= complete:
            break
        now += a.poll_ns
    return now + link_ns(RESULTS), polls + 4, ROW + INSTRUCTION + polls * STATUS + RESULTS


def software(size, a):
    """Returns time and calls of software. Loads of a block hide behind the link, except the first row."""
    now = lookup_ns()
    blocks = [min(BLOCK, size - at) for at in range(0, size, BLOCK)]
    for block in blocks:
        now += row_ns(min(ROW, block)) + (block + ROW - 1) // ROW * link_ns(ROW) + block * a.compare_ns
    return now, len(blocks) + 3


def results(size, a):
    engine = engine_ns(size, a)
    total, calls, link = program(engine, a)
    time, reads = software(size, a)
    return {
        "file_bytes": size,
        "engine_ns": engine,
        "total_ns": total,
        "requests": calls,
        "link_bytes": link,
        "software_ns": time,
        "software_requests": reads,
    }


def bytes_of(text):
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1].upper())
    return int(text[:-1]) << shift if shift else int(text)


def main():
    p = argparse.ArgumentParser(description="An independent model of the word query of ISPFS.")
    p.add_argument("files", nargs="+", type=bytes_of)
    p.add_argument("--engine-ns", type=int, default=10, help="time of a unit of the engine for a byte")
    p.add_argument("--start-ns", type=int, default=1000, help="time to decode an instruction")
    p.add_argument("--buffers", type=int, default=4, help="rows of a controller in flight")
    p.add_argument("--poll-ns", type=int, default=100_000_000, help="sleep between two polls")
    p.add_argument("--compare-ns", type=int, default=61, help="time of software for a byte")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    found = [results(size, a) for size in a.files]
    if a.json:
        print(json.dumps(found))
        return
    print(f"{'bytes':>12} {'engine MB/s':>12} {'program MB/s':>13} {'software MB/s':>14} {'ratio':>7}")
    for r in found:
        speed = [r["file_bytes"] * 1e3 / r[key] for key in ("engine_ns", "total_ns", "software_ns")]
        print(f"{r['file_bytes']:12} {speed[0]:12.2f} {speed[1]:13.2f} {speed[2]:14.2f} {speed[0] / speed[2]:7.2f}")


if __name__ == "__main__":
    main()
