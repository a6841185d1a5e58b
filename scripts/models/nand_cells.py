#!/usr/bin/env python3
"""Computes the times of reads, programs and erases with types of pages and suspensions, independently of frit.

The model shares no code with the program. It follows the definitions in docs/reference/media.md and
docs/design/engine.md, steps from instant to instant, and prints the time at which each command ends.

The input has one command on a line, in order of emission:
  time in ns, unit, operation (R, P or E), block, page in the block

With --requests, the input is a file of `frit run --requests` of a volume that was filled in order and has no PCM,
and the model compares the end of each request. Then page P lies on unit P mod (number of units), and a write takes
the next page of the order in which the volume was filled.

Example:
  frit run nand-only-bench,media.nand.suspend=program-erase,media.nand.t_suspend_program=5us,media.nand.t_suspend_erase=20us \\
    gen:uniform,count=500,read=0.7,size=2K --warm fill --qd 8 --requests mixed.csv
  scripts/models/nand_cells.py --requests mixed.csv --depth 8 --units 16 --channels 8 --suspend program-erase ...
"""

import argparse
import csv
import heapq
import itertools
import sys


class Command:
    """A command of a unit. `left` is the time that its cells need after a suspension."""

    def __init__(self, number, request, unit, op, block, page):
        self.number, self.request, self.unit, self.op, self.block, self.page = number, request, unit, op, block, page
        self.suspensions = self.reads = 0
        self.left = 0


class Unit:
    def __init__(self):
        self.waiting = []  # commands in order of emission
        self.current = None  # the command that has the unit
        self.cells_end = None  # end of the cells of a current program or erase
        self.held = None  # the suspended program or erase
        self.overtakes = 0


class Channel:
    def __init__(self):
        self.waiting, self.free_at = [], 0


def page_type(args, page):
    """The type of a page, 0 for LSB."""
    types = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}[args.cell]
    if args.page_order == "word-line" or types < 3:
        return page % types
    first = [0, 0, 0, 0, 0, 0, 1, 1]
    return first[page] if page < len(first) else (page - 8) // 2 % types


class Device:
    def __init__(self, args):
        self.args, self.now, self.events, self.order = args, 0, [], itertools.count()
        self.units = [Unit() for _ in range(args.units)]
        self.channels = [Channel() for _ in range(args.channels)]
        self.ended = []

    def at(self, time, then):
        heapq.heappush(self.events, (time, next(self.order), then))

    def cells(self, command):
        args = self.args
        if command.op == "E":
            return args.t_erase
        times = args.t_read if command.op == "R" else args.t_prog
        return times[page_type(args, command.page)] if len(times) > 1 else times[0]

    def suspends(self, op):
        return op == "E" and self.args.suspend != "none" or op == "P" and self.args.suspend == "program-erase"

    # The life of a command: command and data in, cells, data out.

    def take(self, unit, command, at):
        unit.waiting.remove(command)
        unit.current = command
        if at > self.now:
            self.at(at, lambda: self.enter(unit, command))
        else:
            self.enter(unit, command)

    def enter(self, unit, command):
        length = self.args.t_command + (self.args.transfer if command.op == "P" else 0)
        if length:
            self.ask(command, length, lambda: self.work(unit, command, self.cells(command)))
        else:
            self.work(unit, command, self.cells(command))

    def work(self, unit, command, time):
        end = self.now + time
        unit.cells_end = end if self.suspends(command.op) else None
        self.at(end, lambda: self.worked(unit, command, end))

    def worked(self, unit, command, end):
        if self.suspends(command.op) and (unit.current is not command or unit.cells_end != end):
            return  # suspended in the meantime
        unit.cells_end = None
        if command.op == "R":
            self.ask(command, self.args.transfer, lambda: self.leave(unit, command))
        else:
            self.leave(unit, command)

    def leave(self, unit, command):
        unit.current = None
        self.ended.append(command)

    def ask(self, command, length, then):
        channel = self.channels[command.unit % self.args.channels]
        channel.waiting.append((self.now, command.number, length, then))
        channel.waiting.sort(key=lambda w: w[:2])

    # The choices of an instant.

    def free_of_hazards(self, unit, command):
        before = itertools.takewhile(lambda c: c is not command, unit.waiting)
        return not any(self.precedes(c, command) for c in before)

    @staticmethod
    def precedes(before, command):
        """Commands of a block keep their order, but a read follows only programs of its page and erases."""
        if command.op == "E" and before.op == "R":
            return True
        if before.block != command.block or before.op == "R":
            return False
        return command.op != "R" or before.op == "E" or before.page == command.page

    def pick(self, unit):
        if self.args.scheduler == "fifo":
            return unit.waiting[0] if unit.waiting else None
        free = [c for c in unit.waiting[:128] if self.free_of_hazards(unit, c)]
        if not free or free[0].op == "R":
            return free[0] if free else None
        reads = [c for c in free if c.op == "R"]
        if reads and unit.overtakes < 16:
            unit.overtakes += 1
            return reads[0]
        unit.overtakes = 0
        return free[0]

    def read_for(self, unit, operation):
        """The read that is executed in a suspension of an operation."""
        if operation.reads == self.args.max_suspend_reads:
            return None
        window = unit.waiting[:1] if self.args.scheduler == "fifo" else unit.waiting[:128]
        fit = (c for c in window if c.op == "R" and c.block != operation.block and self.free_of_hazards(unit, c))
        return next(fit, None)

    def choose(self, unit):
        args = self.args
        if unit.current is None and unit.held is not None:
            operation, read = unit.held, self.read_for(unit, unit.held)
            if read is not None:
                operation.reads += 1
                self.take(unit, read, self.now)
            else:
                unit.held, unit.current = None, operation
                self.work(unit, operation, operation.left + args.t_resume)
        elif unit.current is None:
            command = self.pick(unit)
            if command is not None:
                self.take(unit, command, self.now)
                self.choose(unit)
        elif unit.cells_end is not None:
            operation, left = unit.current, unit.cells_end - self.now
            least = args.suspend_min_erase if operation.op == "E" else args.suspend_min_program
            read = self.read_for(unit, operation)
            if read is None or left < max(least, 1) or operation.suspensions == args.max_suspends:
                return
            operation.left, unit.held, unit.cells_end = left, operation, None
            operation.suspensions += 1
            operation.reads += 1
            time = args.t_suspend_erase if operation.op == "E" else args.t_suspend_program
            self.take(unit, read, self.now + time)

    def end_phases(self):
        while self.events and self.events[0][0] == self.now:
            heapq.heappop(self.events)[2]()

    def step(self):
        """The choices and the grants of this instant."""
        while True:
            for unit in self.units:
                self.choose(unit)
            for channel in self.channels:
                if channel.waiting and channel.free_at <= self.now:
                    _, _, length, then = channel.waiting.pop(0)
                    channel.free_at = self.now + length
                    self.at(channel.free_at, then)
            # A phase that takes no time has ended.
            if not self.events or self.events[0][0] > self.now:
                return
            self.end_phases()


def simulate(args, arrivals, emit):
    """Returns start and end of each request. `emit` gives the commands of a request to the device."""
    device, times, pending, next_request = Device(args), [], {}, 0
    while next_request < len(arrivals) or pending:
        device.end_phases()
        while True:
            for command in device.ended:
                pending[command.request] -= 1
                if pending[command.request] == 0:
                    times[command.request][1] = device.now
                    del pending[command.request]
            device.ended = []
            while next_request < len(arrivals) and len(pending) < args.depth:
                if args.open and arrivals[next_request] > device.now:
                    break
                times.append([device.now, None])
                pending[next_request] = emit(device, next_request)
                next_request += 1
            device.step()
            if not device.ended:
                break
        later = [device.events[0][0]] if device.events else []
        if args.open and next_request < len(arrivals) and len(pending) < args.depth:
            later.append(arrivals[next_request])
        if later:
            device.now = min(later)
    return times


def of_commands(args, rows):
    def emit(device, request):
        _, unit, op, block, page = rows[request]
        device.units[int(unit)].waiting.append(Command(request, request, int(unit), op, int(block), int(page)))
        return 1

    for _, end in simulate(args, [int(r[0]) for r in rows], emit):
        print(end)


def of_requests(args, path):
    with open(path, newline="") as file:
        table = list(csv.DictReader(file))
    place, taken, number = {}, args.pages, itertools.count()

    def emit(device, request):
        nonlocal taken
        first, size = int(table[request]["offset"]), int(table[request]["bytes"])
        op = "R" if table[request]["op"] in ("R", "read") else "P"
        pages = range(first // args.page_bytes, (first + size - 1) // args.page_bytes + 1)
        for page in pages:
            if op == "P":
                place[page], taken = taken, taken + 1
            at = place.get(page, page)
            block, in_block = divmod(at // args.units, args.pages_per_block)
            unit = at % args.units
            device.units[unit].waiting.append(Command(next(number), request, unit, op, block, in_block))
        return len(pages)

    computed = simulate(args, [int(r["arrival_ns"]) for r in table], emit)
    wrong = 0
    for row, (start, end) in zip(table, computed):
        if (start, end) != (int(row["start_ns"]), int(row["end_ns"])):
            wrong += 1
            if wrong <= 5:
                print(f"request {row['request']}: {row['start_ns']}..{row['end_ns']}, model {start}..{end}")
    print(f"{len(table)} requests, {wrong} differ")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    times = lambda text: [int(t) for t in text.split(",")]
    parser.add_argument("--requests", help="file of frit run --requests; else commands on standard input")
    parser.add_argument("--pages", type=int, default=0, help="pages of the filled volume")
    parser.add_argument("--depth", type=int, default=1 << 30, help="outstanding requests")
    parser.add_argument("--open", action="store_true", help="requests arrive at their times")
    parser.add_argument("--scheduler", choices=["fifo", "read-first"], default="fifo")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--units", type=int, default=1)
    parser.add_argument("--cell", choices=["slc", "mlc", "tlc", "qlc"], default="slc")
    parser.add_argument("--page-order", choices=["staggered", "word-line"], default="staggered")
    parser.add_argument("--page-bytes", type=int, default=2048)
    parser.add_argument("--pages-per-block", type=int, default=64)
    parser.add_argument("--t-read", type=times, default=[62_301], help="ns, for each type")
    parser.add_argument("--t-prog", type=times, default=[200_001], help="ns, for each type")
    parser.add_argument("--t-erase", type=int, default=1_500_000, help="ns")
    parser.add_argument("--transfer", type=int, default=13_199, help="ns for a page")
    parser.add_argument("--t-command", type=int, default=0, help="ns")
    parser.add_argument("--suspend", choices=["none", "erase", "program-erase"], default="none")
    parser.add_argument("--t-suspend-program", type=int, default=0, help="ns")
    parser.add_argument("--t-suspend-erase", type=int, default=0, help="ns")
    parser.add_argument("--t-resume", type=int, default=0, help="ns")
    parser.add_argument("--suspend-min-program", type=int, default=0, help="ns")
    parser.add_argument("--suspend-min-erase", type=int, default=0, help="ns")
    parser.add_argument("--max-suspends", type=int, default=16)
    parser.add_argument("--max-suspend-reads", type=int, default=64)
    args = parser.parse_args()
    if args.requests:
        return of_requests(args, args.requests)
    of_commands(args, list(csv.reader(sys.stdin)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
