#!/usr/bin/env python3
"""Computes the times of requests with MQSim's data cache as its source states them, independently of frit.

The model is written from Data_Cache_Manager_Flash_Advanced.cpp and Data_Cache_Flash.cpp of MQSim
(CMU-SAFARI/MQSim). The DRAM serves one access at a time, in their order, and takes the time of
estimate_dram_access_time (Data_Cache_Manager_Base.h). A write enters the cache page by page while the data on
their way to the flash have less than a page for each plane (SSD_Device.cpp), and is acknowledged when its
accesses to the DRAM are done. A page that is not in the "bloom filter", a set that is emptied each second, is
written to the flash at once, and leaves the cache when it is there. Other pages are written when they are
evicted, least recently used first. The flash is that of mqsim_timing.py.

Example:
  frit mqsim ssdconfig.xml > ssd.toml
  frit run ssd.toml gen:uniform,count=500,read=0.5,size=8K,align=8K --wrap --warm fill --requests r.csv
  scripts/models/mqsim_cache.py ssdconfig.xml r.csv --caching write-cache
"""

import sys
from collections import OrderedDict

from mqsim_timing import Drive, Simulation, arguments, compare

SECTOR = 512


def count(sectors):
    return bin(sectors).count("1")


class Slot:
    def __init__(self, sectors, dirty, time):
        self.sectors, self.dirty, self.time = sectors, dirty, time


class Request:
    """A request: parts that have not entered the cache, pages of the flash, and sectors of the DRAM."""
    def __init__(self, parts, time, then):
        self.parts, self.time, self.then, self.flash, self.dram = parts, time, then, 0, 0

    def check_finished(self):
        if not self.parts and self.flash == 0 and self.dram == 0:
            self.then()


class CachedSimulation(Simulation):
    def __init__(self, config, depth, interleaves, mode):
        super().__init__(Drive(config), depth, interleaves)
        number = lambda name: int(self.drive.values["Data_Cache_" + name])
        self.mode, self.capacity = mode, number("Capacity") // self.drive.page_bytes
        self.row, self.burst = number("DRAM_Row_Size"), number("DRAM_Data_Busrt_Size")
        self.transfer_time = 1e9 / (number("DRAM_Data_Rate") * 1e6)
        self.rcd, self.cl, self.rp = number("DRAM_tRCD"), number("DRAM_tCL"), number("DRAM_tRP")
        self.slots = OrderedDict()  # by page, the least recently used first
        self.accesses, self.dram_busy = [], False
        self.under_way, self.most = 0, self.planes * self.drive.page_bytes // SECTOR
        self.waiting_writes, self.recent, self.reset_at = [], set(), 0

    def access(self, sectors, then):
        """An access to the DRAM."""
        self.accesses.append((sectors * SECTOR, then))
        self.next_access()

    def next_access(self):
        if self.dram_busy or not self.accesses:
            return
        size, then = self.accesses.pop(0)
        first = self.rcd + self.cl
        if size <= self.row:
            time = first + int(size // self.burst // 2 * self.transfer_time)
        else:
            row = int(self.row // self.burst // 2 * self.transfer_time + self.rp)
            rest = int(size % self.row / (self.burst * self.transfer_time))
            time = first + row * (size // self.row // 2) + first + rest
        self.dram_busy = True
        self.at(self.now + time, lambda: self.accessed(then))

    def accessed(self, then):
        then()
        self.dram_busy = False
        self.next_access()

    def serve(self, op, offset, size, then):
        keeps = {"read": ("write-cache", "read-cache", "write-read-cache"),
                 "write": ("write-cache", "write-read-cache")}
        if self.mode not in keeps[op]:
            return super().serve(op, offset, size, then)
        bits = lambda low, high: (1 << high // SECTOR) - (1 << low // SECTOR)
        parts = [(page, bits(low, high)) for page, low, high in self.parts(offset, size)]
        request = Request(parts, self.now, then)
        if op == "read":
            self.read(request)
        else:
            self.enter(request)
            if request.parts:
                self.waiting_writes.append(request)

    def use(self, page):
        if page in self.slots:
            self.slots.move_to_end(page)
        return self.slots.get(page)

    def evict(self):
        """Makes space for a page. Returns the page that has to be written, and its slot."""
        if len(self.slots) < self.capacity:
            return None
        page, slot = self.slots.popitem(last=False)
        return (page, slot) if slot.dirty else None

    def write(self, page, sectors, time):
        self.queue("write", page, count(sectors) * SECTOR, lambda: self.programmed(page, sectors, time))

    def enter(self, request):
        evicted, cold, entered, amount = [], [], 0, 0
        while request.parts and self.under_way + amount < self.most:
            page, sectors = request.parts.pop(0)
            slot = self.use(page)
            if slot:
                slot.sectors |= sectors
                slot.dirty, slot.time = True, max(slot.time, request.time)
            else:
                old = self.evict()
                if old:
                    evicted.append(old)
                    amount += count(old[1].sectors)
                slot = self.slots[page] = Slot(sectors, True, request.time)
            entered += count(sectors)
            if page not in self.recent:
                self.recent.add(page)
                slot.dirty = False
                amount += count(sectors)
                cold.append((page, sectors))
        request.dram += entered
        self.under_way += amount
        if evicted:
            self.access(sum(count(slot.sectors) for _, slot in evicted), lambda: self.write_evicted(evicted))
        if entered:
            self.access(entered, lambda: self.from_dram(request, entered))
        for page, sectors in cold:
            self.write(page, sectors, request.time)
        self.schedule()
        if self.now > self.reset_at:
            self.recent.clear()
            self.reset_at = self.now + 1_000_000_000

    def write_evicted(self, evicted):
        for page, slot in evicted:
            self.write(page, slot.sectors, slot.time)
        self.schedule()

    def from_dram(self, request, sectors):
        request.dram -= sectors
        request.check_finished()

    def programmed(self, page, sectors, time):
        self.under_way -= count(sectors)
        slot = self.use(page)
        if slot and time >= slot.time:
            del self.slots[page]
        for request in list(self.waiting_writes):
            self.enter(request)
            if not request.parts:
                self.waiting_writes.remove(request)
            if self.under_way > self.most:
                break

    def read(self, request):
        missing, found = [], 0
        for page, sectors in request.parts:
            slot = self.use(page)
            have = slot.sectors & sectors if slot else 0
            found += count(have)
            if sectors & ~have:
                missing.append((page, sectors & ~have))
        request.parts, request.flash, request.dram = [], len(missing), found
        if found:
            self.access(found, lambda: self.from_dram(request, found))
        for page, sectors in missing:
            self.queue("read", page, count(sectors) * SECTOR,
                       lambda page=page, sectors=sectors: self.from_flash(request, page, sectors))
        self.schedule()

    def from_flash(self, request, page, sectors):
        if self.mode != "write-cache":
            self.fill(request, page, sectors)
        request.flash -= 1
        request.check_finished()

    def fill(self, request, page, sectors):
        slot = self.use(page)
        if slot:
            slot.sectors |= sectors
            # MQSim writes such a page to the flash when it is evicted, even if it was not written.
            slot.dirty, slot.time = True, max(slot.time, request.time)
            return
        old = self.evict()
        if old:
            self.under_way += count(old[1].sectors)
            self.access(count(old[1].sectors), lambda: self.write_evicted([old]))
        self.slots[page] = Slot(sectors, False, request.time)
        self.access(count(sectors), lambda: None)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--caching", default="write-cache", help="caching mode of the flow",
                        choices=["write-cache", "read-cache", "write-read-cache", "turned-off"])
    args = parser.parse_args()
    return compare(args, CachedSimulation(args.config, args.depth, args.interleave_dies, args.caching))


if __name__ == "__main__":
    sys.exit(main())
