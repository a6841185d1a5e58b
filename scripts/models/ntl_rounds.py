#!/usr/bin/env python3
"""An independent model of NTL's rounds, log and merges, written from the paper and not from the program.

  scripts/models/ntl_rounds.py TRACE                                     clean and dirty rounds of static mapping
  scripts/models/ntl_rounds.py TRACE --mapping dynamic --flag any --json
  scripts/models/ntl_rounds.py TRACE --log full --request-pages 1
  scripts/models/ntl_rounds.py --readings Installing_log181.txt.zst      readings of the paper's rounds, as a table

A round is a parallel write: each chip writes at most one page. Rounds are shared by all requests (a page whose chip is
in the open round closes it), or formed within one request. Sizes are those of the stack `ntl-paper`: 4 chips of 8 GiB,
pages of 4 KiB, refresh units of 128 pages. Traces are frit's recorded CSV and the Nexus 5 recordings (BIOTracer), both
also compressed with zstd, for which the script needs the program zstd or the module zstandard.

A test (crates/cli/tests/all/ntl_model.rs) compares the counts with those of `frit run`.
"""

import argparse
import collections
import json
import math

from recorded import text_of

SECTORS = 8
CHIP_PAGES = (8 << 30) // 4096
UNIT_PAGES = 128
FLAGS = ("lookup", "any", "most")

Request = collections.namedtuple("Request", "op sector sectors")


def requests_of(path, limit=None, whole_pages=False):
    """Returns the first requests of a trace in file order. A write with a preflush is preceded by a flush."""
    lines = text_of(path).splitlines()
    found = []
    recorded = lines[0].startswith("time_us,")
    for line in lines[1:] if recorded else lines:
        if limit is not None and len(found) >= limit:
            break
        if recorded:
            _, op, sector, sectors, flags = line.split(",")[:5]
            if "P" in flags and op != "F":
                found.append(Request("F", 0, 0))
        else:
            sector, sectors, _, flags = line.split()[:4]
            op = "W" if int(flags) & 1 else "R"
        sector, sectors = int(sector or 0), int(sectors or 0)
        request = Request(op, sector, sectors)
        found.append(without_added_sector(request) if whole_pages and op in "RW" else request)
    return found[:limit]


def without_added_sector(r):
    """Returns a request without the sector that a driver added to whole pages. Others cover whole pages anyway."""
    added = r.sector % SECTORS == 0 and r.sectors > SECTORS and r.sectors % SECTORS == 1
    return r._replace(sectors=r.sectors - 1) if added else r


class Shared:
    """Rounds that all requests share."""

    def __init__(self, chips, flag):
        self.chips, self.flag = chips, flag
        self.clean = self.dirty = 0
        self.open = {}
        self.seen = False

    def page(self, chip, update):
        self.seen = self.seen or update
        if chip in self.open:
            self.close()
        self.open[chip] = update

    def close(self):
        if self.open:
            updates = sum(self.open.values())
            is_dirty = {"lookup": self.seen, "any": updates > 0, "most": 2 * updates > len(self.open)}[self.flag]
            self.dirty += is_dirty
            self.clean += not is_dirty
        self.open, self.seen = {}, False

    def whole(self):
        """A round on all chips: it waits until the chips of the open round are idle."""
        self.close()
        self.clean += 1

    def end(self):
        pass


class OfRequest(Shared):
    """Rounds of one request: the n-th page of each chip is in its n-th round."""

    def __init__(self, chips, flag):
        super().__init__(chips, flag)
        self.pages = collections.Counter()
        self.updates = collections.Counter()

    def page(self, chip, update):
        self.updates[self.pages[chip]] += update
        self.pages[chip] += 1

    def close(self):
        pass

    def end(self):
        rounds = max(self.pages.values(), default=0)
        dirty = sum(self.updates[n] > 0 for n in range(rounds))
        self.dirty += dirty
        self.clean += rounds - dirty
        self.pages.clear()
        self.updates.clear()


class Model:
    """Mapping, log and counts."""

    def __init__(self, rounds="shared", flag="lookup", mapping="static", log=False, log_share=0.001, request_pages=0,
                 chips=4):
        self.rounds = (Shared if rounds == "shared" else OfRequest)(chips, flag)
        self.chips, self.mapping, self.request_pages = chips, mapping, request_pages
        self.homes, self.live = {}, set()
        self.turn = 0
        units = max(2, math.ceil(CHIP_PAGES * log_share / UNIT_PAGES)) if log else 0
        self.units, self.log_pages = units, units * UNIT_PAGES * chips
        self.buffer, self.slots = [], []
        self.in_log = {}
        self.merges = self.merge_rounds = self.refreshes = self.log_writes = 0

    def home(self, page):
        """Returns the chip of a page at home, selected at the first write."""
        if page not in self.homes:
            self.homes[page] = page % self.chips if self.mapping == "static" else self.turn
            self.turn = (self.homes[page] + 1) % self.chips
        return self.homes[page]

    def merge(self):
        self.rounds.close()
        to = collections.Counter(self.homes[p] for n, p in enumerate(self.slots) if self.in_log.get(p) == n)
        rounds = max(to.values(), default=0)
        self.merges += 1
        self.merge_rounds += rounds
        self.rounds.dirty += rounds
        self.refreshes += self.units
        self.slots, self.in_log = [], {}

    def write_buffer(self):
        if not self.buffer:
            return
        for page in self.buffer:
            if len(self.slots) == self.log_pages:
                self.merge()
            self.in_log[page] = len(self.slots)
            self.slots.append(page)
            self.log_writes += 1
        self.buffer = []
        self.rounds.whole()

    def write(self, page, logged):
        update = page in self.homes
        self.live.add(page)
        if not (update and logged):
            if page in self.buffer:
                # As the last entry takes the place of a removed one, the order changes.
                at = self.buffer.index(page)
                self.buffer[at] = self.buffer[-1]
                self.buffer.pop()
            self.in_log.pop(page, None)
            self.rounds.page(self.home(page), update)
        elif page not in self.buffer:
            self.buffer.append(page)
            if len(self.buffer) == self.chips:
                self.write_buffer()

    def discard(self, first, end):
        """Discards sectors: whole pages read as zeros, parts of pages with data are written."""
        whole = range(-(-first // SECTORS), end // SECTORS)
        for page in range(first // SECTORS, -(-end // SECTORS)):
            if page not in self.live:
                continue
            if page not in whole:
                self.write(page, self.log_pages > 0)
                continue
            self.live.discard(page)
            self.in_log.pop(page, None)
            if page in self.buffer:
                at = self.buffer.index(page)
                self.buffer[at] = self.buffer[-1]
                self.buffer.pop()

    def run(self, requests):
        for r in requests:
            end = r.sector + r.sectors
            if r.op == "W":
                pages = -(-r.sectors // SECTORS)
                logged = self.log_pages > 0 and (self.request_pages == 0 or pages <= self.request_pages)
                for page in range(r.sector // SECTORS, -(-end // SECTORS)):
                    self.write(page, logged)
            elif r.op == "D":
                self.discard(r.sector, end)
            elif r.op == "F":
                self.write_buffer()
            self.rounds.end()
        self.rounds.close()
        return self.counts()

    def counts(self):
        r = self.rounds
        time = r.clean * 200e-6 + r.dirty * 250e-6 + self.refreshes * 0.1
        return {
            "parallel_clean_writes": r.clean, "parallel_dirty_writes": r.dirty, "parallel_writes": r.clean + r.dirty,
            "merges": self.merges, "merge_rounds": self.merge_rounds, "refreshes": self.refreshes,
            "log_writes": self.log_writes, "log_capacity": self.log_pages, "parallel_time": round(time, 9),
        }


def readings(requests):
    """Yields readings of the paper's rounds: name, and clean and dirty rounds of static and of dynamic mapping."""
    writes = [r for r in requests if r.op == "W"]
    whole = [without_added_sector(r) for r in writes]

    def both(name, pages, rounds, flag):
        made = [Model(rounds, flag, mapping).run(pages) for mapping in ("static", "dynamic")]
        return name, *((m["parallel_clean_writes"], m["parallel_dirty_writes"]) for m in made)

    about = {"lookup": "flag set at look-up", "any": "dirty with any update", "most": "dirty with most pages updates"}
    for flag in FLAGS:
        yield both(f"shared, {about[flag]}", whole, "shared", flag)
    yield both("shared, sizes of the file, flag set at look-up", writes, "shared", "lookup")
    yield both("of one request", whole, "request", "any")
    yield both("of one request, sizes of the file", writes, "request", "any")
    rules = {
        "all pages are updates": lambda u, _: all(u),
        "the first page is an update": lambda u, _: u[0],
        "the last page is an update": lambda u, _: u[-1],
        "at least half are updates": lambda u, _: 2 * sum(u) >= len(u),
        "two pages are updates": lambda u, _: sum(u) >= 2,
        "the page that closes it is an update": lambda _, closing: closing,
        "most pages, with the one that closes it": lambda u, closing: 2 * (sum(u) + closing) > len(u) + 1,
    }
    for name, rule in rules.items():
        yield f"shared, dirty if {name}", *(split(whole, m, rule) for m in ("static", "dynamic"))


def split(requests, mapping, rule):
    """Returns clean and dirty shared rounds under a rule over the updates of a round and the page that closes it."""
    chip_of, turn, chips, updates = {}, 0, set(), []
    dirty = total = 0
    for r in requests:
        for page in range(r.sector // SECTORS, -(-(r.sector + r.sectors) // SECTORS)):
            update = page in chip_of
            if not update:
                chip_of[page] = page % 4 if mapping == "static" else turn
                turn = (turn + 1) % 4
            if chip_of[page] in chips:
                total += 1
                dirty += bool(rule(updates, update))
                chips, updates = set(), []
            chips.add(chip_of[page])
            updates.append(update)
    if updates:
        total += 1
        dirty += bool(rule(updates, False))
    return total - dirty, dirty


def print_readings(requests):
    print("| reading | static clean, dirty | total | dynamic clean, dirty | total | dynamic / static |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, static, dynamic in readings(requests):
        totals = sum(static), sum(dynamic)
        cells = (f"{c:,}, {d:,} | {c + d:,}".replace(",", " ").replace("  ", ", ") for c, d in (static, dynamic))
        print(f"| {name} | {' | '.join(cells)} | {totals[1] / totals[0]:.4f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("trace")
    parser.add_argument("--readings", action="store_true", help="print readings of the paper's rounds")
    parser.add_argument("--rounds", choices=("shared", "request"), default="shared")
    parser.add_argument("--flag", choices=FLAGS, default="lookup")
    parser.add_argument("--mapping", choices=("static", "dynamic"), default="static")
    parser.add_argument("--log", choices=("none", "full"), default="none")
    parser.add_argument("--log-share", type=float, default=0.001)
    parser.add_argument("--request-pages", type=int, default=0, help="largest request whose updates are logged; 0: any")
    parser.add_argument("--limit", type=int, help="number of requests")
    parser.add_argument("--whole-pages", action="store_true", help="without the sectors that a driver added")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    requests = requests_of(options.trace, options.limit, options.whole_pages)
    if options.readings:
        return print_readings(requests)
    model = Model(options.rounds, options.flag, options.mapping, options.log == "full", options.log_share,
                  options.request_pages)
    counts = model.run(requests)
    if options.json:
        print(json.dumps(counts))
    else:
        for name, value in counts.items():
            print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
