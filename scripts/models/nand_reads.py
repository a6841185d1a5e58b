#!/usr/bin/env python3
"""Computes the times of reads from a filled NAND volume, independently of frit.

The model shares no code with the program. It steps from instant to instant through chips, planes
and channels, as a data sheet and ONFI describe them, and compares the end of each request with a
file of `frit run --requests`.

The volume is filled in order and has no PCM: page P lies on unit P mod (number of units), at page
offset (P / units) mod (pages of a block) of its block. A page crosses the bus as a whole, because
its error correction covers it as a whole.

Example:
  frit run nand-only-bench gen:uniform,count=2000,read=1 --warm fill --qd 8 --requests reads.csv
  scripts/models/nand_reads.py reads.csv --depth 8 --channels 8 --units 16
"""

import argparse
import csv
import heapq
import sys


class Channel:
    """A bus that is granted in order of the requests for it."""

    def __init__(self):
        self.free_at = 0
        self.waiting = []  # (time of the request, number of the command, command, length)


class Command:
    """A read of a page."""

    def __init__(self, number, request, unit, offset):
        self.number, self.request, self.unit, self.offset = number, request, unit, offset
        self.left = 0  # transfers in that have not ended


class Device:
    def __init__(self, args):
        self.args = args
        self.dies = args.channels * args.chips
        self.units = args.units
        self.queue = [[] for _ in range(args.units)]
        # Part that executes one command: the die with multi-plane commands, else the unit.
        self.executing = [[] for _ in range(args.units)]
        self.channels = [Channel() for _ in range(args.channels)]
        self.events = []  # (time, order, function)
        self.order = 0
        self.now = 0
        self.done = []  # requests that ended in this instant
        self.pending = {}

    def at(self, time, function):
        self.order += 1
        heapq.heappush(self.events, (time, self.order, function))

    def executor(self, unit):
        return unit % self.dies if self.args.planes == "multi" else unit

    def start(self):
        """Starts commands on idle executors: the oldest command, and those that can join it."""
        for executor in range(self.units):
            if self.executing[executor]:
                continue
            planes = [u for u in range(self.units) if self.executor(u) == executor and self.queue[u]]
            if not planes:
                continue
            leader = min((self.queue[u][0] for u in planes), key=lambda c: c.number)
            members = [self.queue[u][0] for u in planes if self.queue[u][0].offset == leader.offset]
            for command in members:
                self.queue[command.unit].pop(0)
            self.executing[executor] = members
            if self.args.t_command:
                for command in members:
                    self.ask(command, self.args.t_command, lambda m=members: self.commanded(m))
                members[0].left = len(members)
            else:
                self.at(self.now + self.args.t_read, lambda m=members: self.sensed(m))

    def commanded(self, members):
        members[0].left -= 1
        if members[0].left == 0:
            self.at(self.now + self.args.t_read, lambda: self.sensed(members))

    def sensed(self, members):
        """The cells have been read: each page asks for the bus."""
        for command in list(members):
            length = (self.args.page_bytes * self.args.bus_ps + 500) // 1000
            self.ask(command, length, lambda c=command: self.transferred(c))

    def transferred(self, command):
        self.executing[self.executor(command.unit)].remove(command)
        self.pending[command.request] -= 1
        if self.pending[command.request] == 0:
            self.done.append(command.request)

    def ask(self, command, length, then):
        channel = self.channels[command.unit % self.args.channels]
        channel.waiting.append((self.now, command.number, length, then))
        channel.waiting.sort(key=lambda w: w[:2])

    def grant(self):
        for channel in self.channels:
            if channel.waiting and channel.free_at <= self.now:
                _, _, length, then = channel.waiting.pop(0)
                channel.free_at = self.now + length
                self.at(channel.free_at, then)

    def end_phases(self):
        """Ends all phases of this instant."""
        while self.events and self.events[0][0] == self.now:
            heapq.heappop(self.events)[2]()

    def next_instant(self):
        if not self.events:
            return None
        return self.events[0][0]


def commands(device, request, offset, size, number):
    """Queues the commands of a request, and returns the next number."""
    pages = range(offset // device.args.page_bytes, (offset + size - 1) // device.args.page_bytes + 1)
    for page in pages:
        in_block = page // device.units % device.args.pages_per_block
        unit = page % device.units
        device.queue[unit].append(Command(number, request, unit, in_block))
        number += 1
    device.pending[request] = len(pages)
    return number


def simulate(args, rows):
    """Returns start and end of each request."""
    device, times, number, next_row, outstanding = Device(args), {}, 1, 0, 0
    while next_row < len(rows) or outstanding:
        device.end_phases()
        # The host reacts to what ended, before units choose.
        outstanding -= len(device.done)
        for request in device.done:
            times[request][1] = device.now
        device.done = []
        while next_row < len(rows) and outstanding < args.depth:
            arrival, offset, size = rows[next_row]
            if args.open and arrival > device.now:
                break
            times[next_row] = [device.now, None]
            number = commands(device, next_row, offset, size, number)
            next_row, outstanding = next_row + 1, outstanding + 1
        device.start()
        device.grant()
        later = [t for t in [device.next_instant()] if t is not None]
        if args.open and next_row < len(rows) and outstanding < args.depth:
            later.append(rows[next_row][0])
        if later:
            device.now = min(later)
    return [times[i] for i in range(len(rows))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("requests", help="file of frit run --requests")
    parser.add_argument("--depth", type=int, default=1 << 30, help="outstanding requests")
    parser.add_argument("--open", action="store_true", help="requests arrive at their times")
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--chips", type=int, default=1, help="dies on a channel")
    parser.add_argument("--units", type=int, default=16, help="dies, or planes if these are units")
    parser.add_argument("--planes", choices=["single", "multi"], default="single")
    parser.add_argument("--page-bytes", type=int, default=2048)
    parser.add_argument("--pages-per-block", type=int, default=64)
    parser.add_argument("--t-read", type=int, default=62_301, help="ns; as the others from profile slc-k9-2016")
    parser.add_argument("--t-command", type=int, default=0, help="ns")
    parser.add_argument("--bus-ps", type=int, default=6_445, help="ps for a byte")
    args = parser.parse_args()
    with open(args.requests, newline="") as file:
        table = list(csv.DictReader(file))
    rows = [(int(r["arrival_ns"]), int(r["offset"]), int(r["bytes"])) for r in table]
    computed = simulate(args, rows)
    wrong = 0
    for row, (start, end) in zip(table, computed):
        if (start, end) != (int(row["start_ns"]), int(row["end_ns"])):
            wrong += 1
            if wrong <= 5:
                print(f"request {row['request']}: {row['start_ns']}..{row['end_ns']}, model {start}..{end}")
    mean = sum(end - start for start, end in computed) / max(len(computed), 1)
    print(f"{len(rows)} requests, mean service {mean:.1f} ns, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
