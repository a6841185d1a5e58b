#!/usr/bin/env python3
"""Computes the times of requests as the source of MQSim states them, independently of frit.

The model is written from MQSim's source (CMU-SAFARI/MQSim): command times of
ONFI_Channel_NVDDR2.cpp, latencies of Flash_Chip.h, chips that take commands only when all their dies
are idle (TSU_OutofOrder.cpp), and then for one die (TSU_Base.cpp returns in its loop over the dies),
reads that leave a chip in the order in which they are ready (NVM_PHY_ONFI_NVDDR2.cpp), packets of
PCIe_Link.h, and places of pages by the plane allocation scheme (Address_Mapping_Unit_Page_Level.cpp).
The data cache is off (mqsim_cache.py adds it), and the mapping table is ideal. The drive was filled
in order, so page L is the (L / planes)-th page of its plane. There is no garbage collection: a model
of it would need more than a page.

It reads MQSim's own configuration and the requests of `frit run --requests` (operation, offset, size;
`--depth` outstanding requests), and compares the latency of each request.

Example:
  frit mqsim ssdconfig.xml > ssd.toml
  frit run ssd.toml gen:uniform,count=500,read=1,size=8K,align=8K --wrap --warm fill --requests r.csv
  scripts/models/mqsim_timing.py ssdconfig.xml r.csv
"""

import argparse
import csv
import heapq
import sys
import xml.etree.ElementTree as ElementTree

# Default arguments of ONFI_Channel_NVDDR2.h, in ns.
T_DBSY, T_CS, T_RR, T_WB, T_WC, T_ADL, T_CALS, T_WPST, T_WPSTH = 500, 20, 20, 100, 25, 70, 15, 6, 15


def command_time(op, planes):
    if op == "read":
        return T_CS + planes * 6 * T_WC + (planes - 1) * T_DBSY + T_WB + T_RR
    first = 5 * T_WC + T_ADL + T_WPST + T_CALS + T_WB
    last = 6 * T_WC + T_ADL + T_WPST + T_WPSTH + T_WB
    return T_CS + (planes - 1) * (first + T_DBSY) + last


class Drive:
    def __init__(self, path):
        values = {e.tag: (e.text or "").strip() for e in ElementTree.parse(path).getroot().iter()}
        self.values = values
        number = lambda name: int(values[name])
        self.shape = {"C": number("Flash_Channel_Count"), "W": number("Chip_No_Per_Channel"),
                      "D": number("Die_No_Per_Chip"), "P": number("Plane_No_Per_Die")}
        self.scheme = values["Plane_Allocation_Scheme"]
        self.pages, self.page_bytes = number("Page_No_Per_Block"), number("Page_Capacity")
        kinds = {"SLC": ["LSB"], "MLC": ["LSB", "MSB"], "TLC": ["LSB", "CSB", "MSB"]}[values["Flash_Technology"]]
        self.cells = {"read": [number(f"Page_Read_Latency_{k}") + 20 for k in kinds],
                      "write": [number(f"Page_Program_Latency_{k}") for k in kinds]}
        # Cut to whole ns before it is doubled.
        self.two_units = int(1000 / number("Channel_Transfer_Rate")) * 2
        self.width = number("Flash_Channel_Width")
        self.lanes, self.lane = number("PCIe_Lane_Count"), float(values["PCIe_Lane_Bandwidth"])

    def packets(self, payload):
        """Time of a message on the PCIe link."""
        full, rest = divmod(payload, 128)
        total = full * (128 + 28) + (rest + 28 if rest else 0)
        return int(-(-total // self.lanes) / self.lane)

    def transfer(self, size):
        return size // self.width // 2 * self.two_units

    def place(self, page):
        """Channel, chip, die and plane of a logical page."""
        at = {}
        for letter in self.scheme:
            page, at[letter] = divmod(page, self.shape[letter])
        return at["C"], at["W"], at["D"], at["P"]

    def latency(self, op, offset):
        kinds = self.cells[op]
        if len(kinds) == 3:
            return kinds[0 if offset <= 5 else 1 if offset <= 7 else (offset - 8) // 2 % 3]
        return kinds[offset % len(kinds)]


class Page:
    """A transaction."""
    def __init__(self, die, plane, offset, size, then):
        self.die, self.plane, self.offset, self.size, self.then, self.ready = die, plane, offset, size, then, True


class Simulation:
    def __init__(self, drive, depth, interleaves):
        self.interleaves = interleaves
        self.drive, self.depth, self.now, self.order, self.events = drive, depth, 0, 0, []
        channels, chips = drive.shape["C"], drive.shape["W"]
        self.waiting = {(c, w, op): [] for c in range(channels) for w in range(chips) for op in ("read", "write")}
        self.active = {(c, w): 0 for c in range(channels) for w in range(chips)}  # transactions in a chip
        self.bus = [False] * channels
        self.ready = [[] for _ in range(channels)]  # pages that wait to leave their chips
        self.turn = [0] * channels
        self.link = {"up": 0, "down": 0}
        planes = channels * chips * drive.shape["D"] * drive.shape["P"]
        self.planes, self.moved, self.written = planes, {}, {}

    def at(self, time, function):
        self.order += 1
        heapq.heappush(self.events, (time, self.order, function))

    def message(self, way, length, then):
        self.link[way] = max(self.link[way], self.now) + length
        self.at(self.link[way], then)

    def run(self, rows, filled):
        self.rows, self.filled, self.times, self.next = rows, filled, [None] * len(rows), 0
        self.written = self.filled_pages()
        for _ in range(min(self.depth, len(rows))):
            self.submit()
        while self.events:
            self.now, _, function = heapq.heappop(self.events)
            function()
        return self.times

    def submit(self):
        """Doorbell, request for the queue entry, entry; then the data of a write, or its commands."""
        if self.next == len(self.rows):
            return
        n, start = self.next, self.now
        self.next += 1
        op, offset, size = self.rows[n]
        drive = self.drive

        def fetched():
            if op == "write":
                data = lambda: self.message("down", drive.packets(size), begin)
                self.message("up", drive.packets(4), data)
            else:
                begin()

        def begin():
            self.serve(op, offset, size, serviced)

        def serviced():
            if op == "read":
                self.message("up", drive.packets(size), lambda: None)
            self.message("up", drive.packets(16), done)

        def done():
            self.times[n] = self.now - start
            # The host rings the doorbell of the completion queue first.
            self.message("down", drive.packets(2), lambda: None)
            self.submit()

        self.message("down", drive.packets(2),
                     lambda: self.message("up", drive.packets(4), lambda: self.message("down", drive.packets(64), fetched)))

    def serve(self, op, offset, size, then):
        """Serves a request that the device has, with its data."""
        parts = self.parts(offset, size)
        left = [len(parts)]

        def finished():
            left[0] -= 1
            if left[0] == 0:
                then()

        for page, low, high in parts:
            self.queue(op, page, high - low, finished)
        self.schedule()

    def parts(self, offset, size):
        """Pages of a request, each with the range of its bytes."""
        length = self.drive.page_bytes
        pages = range(offset // length, (offset + size - 1) // length + 1)
        return [(p, max(offset - p * length, 0), min(offset + size - p * length, length)) for p in pages]

    def queue(self, op, page, size, then):
        channel, chip, die, plane = self.drive.place(page)
        where = (channel, chip, die, plane)
        if op == "write":
            # The next page of the plane.
            self.old = self.moved.get(page, page // self.planes)
            index = self.moved[page] = self.written[where]
            self.written[where] += 1
        else:
            index = self.moved.get(page, page // self.planes)
        offset = index % self.drive.pages
        # A write of a part of a page waits in its queue for a read of the rest.
        write = Page(die, plane, offset, size, then)
        rest = self.drive.page_bytes - size
        if op == "write" and rest:
            write.ready = False
            old = self.old % self.drive.pages
            read = Page(die, plane, old, rest, lambda: self.merge(channel, write))
            self.waiting[channel, chip, "read"].append(read)
        self.waiting[channel, chip, op].append(write)

    def merge(self, channel, write):
        write.ready = True

    def filled_pages(self):
        """Number of pages of each plane that the fill has written."""
        return {self.drive.place(p): -((p - self.filled) // self.planes) for p in range(self.planes)}

    def schedule(self):
        for channel in range(len(self.bus)):
            self.idle(channel)

    def idle(self, channel):
        """Gives an idle channel to a page that leaves its chip, or to the next chip with commands."""
        if self.bus[channel]:
            return
        if self.ready[channel]:
            chip, size, then = self.ready[channel].pop(0)
            self.bus[channel] = True
            self.at(self.now + self.drive.transfer(size), lambda: self.left(channel, chip, then))
            return
        for _ in range(self.drive.shape["W"]):
            chip = self.turn[channel]
            self.turn[channel] = (chip + 1) % self.drive.shape["W"]
            if self.active[channel, chip]:
                continue
            for op in ("read", "write"):
                if self.waiting[channel, chip, op]:
                    self.issue(channel, chip, op)
                    break
            if self.bus[channel]:
                return

    def issue(self, channel, chip, op):
        """Commands for a die of a chip, or for all, each for the planes with the offset of its first page."""
        waiting, drive, end = self.waiting[channel, chip, op], self.drive, self.now
        die, offset = waiting[0].die, waiting[0].offset
        for _ in range(drive.shape["D"] if self.interleaves else 1):
            group = []
            for page in list(waiting):
                if (page.ready and page.die == die and all(page.plane != g.plane for g in group)
                        and (not group or page.offset == offset)):
                    group.append(page)
                    waiting.remove(page)
            die = (die + 1) % drive.shape["D"]
            if not group:
                continue
            self.bus[channel] = True
            self.active[channel, chip] += len(group)
            end += command_time(op, len(group))
            if op == "write":
                end += sum(drive.transfer(page.size) for page in group)
            cells = drive.latency(op, group[0].offset)
            self.at(end, lambda g=group, t=cells: self.at(self.now + t, lambda: self.worked(channel, chip, op, g)))
        if self.bus[channel]:
            self.at(end, lambda: self.free(channel))

    def free(self, channel):
        self.bus[channel] = False
        self.idle(channel)

    def worked(self, channel, chip, op, group):
        for page in group:
            if op == "read":
                self.ready[channel].append((chip, page.size, page.then))
            else:
                page.then()
        if op == "write":
            self.active[channel, chip] -= len(group)
        self.idle(channel)

    def left(self, channel, chip, then):
        self.active[channel, chip] -= 1
        then()
        self.free(channel)


def arguments(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", help="ssdconfig.xml of MQSim")
    parser.add_argument("requests", help="file of frit run --requests")
    parser.add_argument("--depth", type=int, default=1, help="outstanding requests")
    parser.add_argument("--filled", type=int, default=0, help="bytes of the volume, which was filled in order")
    parser.add_argument("--interleave-dies", action="store_true",
                        help="an idle chip takes commands for all its dies, as MQSim's first versions")
    parser.add_argument("--within", type=float, default=0.03, help="largest relative difference")
    return parser


def compare(args, simulation):
    """Prints how far the latencies of the requests are from those of a simulation. Returns 1 if they differ."""
    with open(args.requests, newline="") as file:
        table = list(csv.DictReader(file))
    rows = [(r["op"], int(r["offset"]), int(r["bytes"])) for r in table]
    times = simulation.run(rows, args.filled // simulation.drive.page_bytes)
    wrong, worst, sums = 0, 0.0, [0, 0]
    for row, model in zip(table, times):
        measured = int(row["end_ns"]) - int(row["start_ns"])
        apart = abs(measured - model) / model
        worst, sums = max(worst, apart), [sums[0] + measured, sums[1] + model]
        if apart > args.within:
            wrong += 1
            if wrong <= 5:
                print(f"request {row['request']}: {measured} ns, model {model} ns")
    mean = sums[0] / sums[1] - 1
    print(f"{len(rows)} requests, {wrong} differ, at most {worst:.2%}; means {mean:+.2%}")
    return 1 if wrong else 0


def main():
    args = arguments(__doc__).parse_args()
    return compare(args, Simulation(Drive(args.config), args.depth, args.interleave_dies))


if __name__ == "__main__":
    sys.exit(main())
