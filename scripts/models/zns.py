#!/usr/bin/env python3
"""Computes the rate of writes to a zoned device against the number of zones, independently of frit.

  scripts/models/zns.py --writers 1,14,15 --max-open 14 --count 32768

The model shares no code with the program. Writers take turns, each in order in its own zone. A zone is striped over
all units, program unit by program unit, and has a write buffer of one program unit for each of them.

- A write is acknowledged when its program unit of the buffer is free: when the program that used it before is done.
- A full program unit is transferred and programmed. A unit executes one command after the other, in the order in which
  they were given; units of a channel share its bus.
- At the limit, the zone that was written least recently is closed. The part of a program unit in its buffer is programmed
  elsewhere, on the units in turn, and read back when the zone is written again. The buffer goes to the next zone with
  what is being programmed from it.

It prints the rate of each number of writers in MB/s, and the program units that were saved, as JSON. With --sum, it
prints the rate of units that are always busy: the sum of the data sheet.
"""

import argparse
import heapq
import json
from collections import deque


class Device:
    def __init__(self, args):
        self.args = args
        self.free = [0.0] * args.units
        self.bus = [[] for _ in range(args.channels)]  # Transfers, in order of time.

    def channel(self, unit):
        return unit * self.args.channels // self.args.units

    def transfer(self, unit, size, after, now):
        """Takes the bus in the first gap from `after` on. Returns the end."""
        bus, length = self.bus[self.channel(unit)], size * self.args.bus_per_byte
        while bus and bus[0][1] < now:
            bus.pop(0)
        begin, at = after, 0
        for at, (first, end) in enumerate(bus):
            if begin + length <= first:
                break
            begin = max(begin, end)
        else:
            at = len(bus)
        bus.insert(at, (begin, begin + length))
        return begin + length

    def program(self, unit, after, now):
        """Transfers a program unit and programs it. Returns the end."""
        sent = self.transfer(unit, self.args.page_bytes, max(after, self.free[unit]), now)
        self.free[unit] = sent + self.args.t_prog
        return self.free[unit]

    def read(self, unit, size, after, now):
        """Reads a program unit and transfers a part of it. Returns the end."""
        self.free[unit] = self.transfer(unit, size, max(after, self.free[unit]) + self.args.t_read, now)
        return self.free[unit]


class Zone:
    def __init__(self):
        self.units = 0  # Program units that were programmed.
        self.part = 0  # Bytes of the next one.
        self.buffer = None  # Ends of programs from the buffer, if the zone is open.
        self.space = self.read = 0.0
        self.saved = (0, 0.0)  # Unit of the saved part, and the end of its program.
        self.used = 0


def take_space(args, zone):
    zone.space = zone.read = 0.0
    while len(zone.buffer) >= args.units:
        zone.space = max(zone.space, zone.buffer.popleft())


def rate(args, writers):
    device, zones, idle = Device(args), [Zone() for _ in range(writers)], deque()
    open_zones, turn, saved = 0, 0, 0
    outstanding, now, last = [], 0.0, 0.0
    for number in range(args.count):
        if len(outstanding) == args.depth:
            now = max(now, heapq.heappop(outstanding))
        zone = zones[number % writers]
        if zone.buffer is None:
            if args.max_open and open_zones == args.max_open:
                oldest = min((z for z in zones if z.buffer is not None), key=lambda z: z.used)
                if oldest.part:
                    end = device.program(turn, max(now, oldest.space, oldest.read), now)
                    oldest.saved, turn, saved = (turn, end), (turn + 1) % args.units, saved + 1
                    oldest.buffer.append(end)
                idle.append(oldest.buffer)
                oldest.buffer = None
                open_zones -= 1
            zone.buffer = idle.popleft() if idle else deque()
            open_zones += 1
            take_space(args, zone)
            if zone.part:
                unit, end = zone.saved
                zone.read = device.read(unit, zone.part, max(now, zone.space, end), now)
        zone.used = number + 1
        if zone.part == 0:
            take_space(args, zone)
        done = max(now, zone.space)
        zone.part += args.size
        if zone.part == args.page_bytes:
            unit = zone.units % args.units
            zone.buffer.append(device.program(unit, max(now, zone.space, zone.read), now))
            zone.units, zone.part = zone.units + 1, 0
        heapq.heappush(outstanding, done)
        last = max(last, done)
    return {"mb_per_s": args.count * args.size / last * 1e3, "saved_units": saved}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", default="1,14,15")
    parser.add_argument("--max-open", type=int, default=14, help="0: no limit")
    parser.add_argument("--count", type=int, default=32768)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--page-bytes", type=int, default=16384)
    parser.add_argument("--bus-per-byte", type=float, default=0.833, help="ns")
    parser.add_argument("--t-prog", type=float, default=450_000, help="ns")
    parser.add_argument("--t-read", type=float, default=45_000, help="ns")
    parser.add_argument("--sum", action="store_true")
    args = parser.parse_args()
    if args.sum:
        each = args.page_bytes * args.bus_per_byte + args.t_prog
        print(json.dumps({"mb_per_s": args.units * args.page_bytes / each * 1e3}))
        return
    print(json.dumps({str(n): rate(args, n) for n in map(int, args.writers.split(","))}))


if __name__ == "__main__":
    main()
