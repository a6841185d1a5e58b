#!/usr/bin/env python3
"""Computes the throughput of the OpenSSD board with its two FTLs, independently of frit.

The model shares no code with the program. It has 8 banks, one path of 125 MB/s to all of them, and
a host with a fixed number of outstanding requests. A bank executes its commands in order, and the
path transfers in order of the requests for it. A read senses its cells and then takes the path; a
program takes the path and then programs. The times are derived from the rates of the paper (Saxena
et al., FAST 2013, section 3.1), see `Times`.

  base   32 KB mapping. A write of a part of a virtual page reads the page first if it was written,
         and programs a whole page. It is done when its programs are done. A read transfers whole
         virtual pages.
  new    4 KB mapping. A write is done when the merge buffer has memory for it: 8 virtual pages, each
         programmed when it has 8 blocks. A read transfers its blocks. If they are a part of a virtual
         page, the other blocks follow into the read buffer of 8 pages, out of the register of the
         bank. A read of a page in the buffer waits until all of it is there.

Example:
  scripts/models/openssd_ftl.py base --op write --size 4K --depth 32
  scripts/models/openssd_ftl.py new --op read --size 4K --depth 1 --two-senses
"""

import argparse
import collections
import heapq
import json
import random

BLOCK = 4096
PAGE = 32768
PAGE_BLOCKS = PAGE // BLOCK
BANKS = 8
BUFFER_PAGES = 8


class Times:
    """Times in seconds, from the rates of the board."""

    byte = 1 / 125e6  # sequential reads
    page = PAGE * byte
    sense = 1 / 2340 - page  # random reads, one at a time, each of a virtual page
    program = BANKS * PAGE / (22528 * BLOCK) - page  # peak rate of writes


class Event:
    """An instant: unknown, or the time at which something is done."""

    def __init__(self, time=None):
        self.time = time
        self.waiting = []


DONE = Event(0.0)


class Board:
    """Banks and path, from instant to instant."""

    def __init__(self):
        self.now = 0.0
        self.order = 0
        self.queue = []  # (time, order, function)
        self.commands = [collections.deque() for _ in range(BANKS)]
        self.busy = [False] * BANKS
        self.path_busy = False
        self.path = collections.deque()

    def at(self, time, function):
        self.order += 1
        heapq.heappush(self.queue, (time, self.order, function))

    def fire(self, event):
        event.time = self.now
        waiting, event.waiting = event.waiting, []
        for function in waiting:
            function()

    def send(self, bank, kind, size, after=DONE):
        """Queues a command in a bank, which starts it when `after` is done. Returns its end."""
        done = Event()
        self.commands[bank].append((kind, size, after, done))
        if after.time is None:
            after.waiting.append(lambda: self.start(bank))
        self.start(bank)
        return done

    def start(self, bank):
        if self.busy[bank] or not self.commands[bank]:
            return
        kind, size, after, done = self.commands[bank][0]
        if after.time is None:
            return
        self.commands[bank].popleft()
        self.busy[bank] = True

        def end():
            self.busy[bank] = False
            self.fire(done)
            self.start(bank)

        if kind == "program":
            self.transfer(size, lambda: self.at(self.now + Times.program, end))
        elif kind == "rest":  # of a page that has been sensed
            self.transfer(size, end)
        else:
            self.at(self.now + Times.sense, lambda: self.transfer(size, end))

    def transfer(self, size, then):
        self.path.append((size, then))
        self.grant()

    def grant(self):
        if self.path_busy or not self.path:
            return
        size, then = self.path.popleft()
        self.path_busy = True

        def end():
            self.path_busy = False
            then()
            self.grant()

        self.at(self.now + size * Times.byte, end)

    def idle_bank(self, turn):
        """Returns the bank in turn, or the next one without commands."""
        for bank in range(turn, turn + BANKS):
            if not self.busy[bank % BANKS] and not self.commands[bank % BANKS]:
                return bank % BANKS
        return turn % BANKS


class Base:
    """The baseline FTL."""

    def __init__(self, board, filled):
        self.board, self.filled = board, filled
        self.bank_of = {}
        self.turn = 0

    def bank(self, page):
        return self.bank_of.get(page, page % BANKS if self.filled else None)

    def write(self, first, end):
        ends = []
        for page in range(first // PAGE, (end - 1) // PAGE + 1):
            whole = first <= page * PAGE and end >= (page + 1) * PAGE
            old = self.bank(page)
            read = DONE if whole or old is None else self.board.send(old, "read", PAGE)
            self.turn += 1
            # A page that is read first stays in its bank: commands behind the program would wait for
            # the read of another bank.
            bank = self.board.idle_bank(self.turn) if read is DONE else old
            ends.append(self.board.send(bank, "program", PAGE, read))
            self.bank_of[page] = bank
        return ends

    def read(self, first, end):
        pages = range(first // PAGE, (end - 1) // PAGE + 1)
        return [self.board.send(self.bank(page), "read", PAGE) for page in pages if self.bank(page) is not None]


class New:
    """The FTL with merge buffer and read buffer. Requests are whole blocks."""

    def __init__(self, board, filled, read_buffer=True, two_senses=False):
        self.board, self.filled = board, filled
        self.read_buffer, self.two_senses = read_buffer, two_senses
        self.place = {}  # block: bank and number of its virtual page
        self.collected = []
        self.memory = collections.deque([DONE] * BUFFER_PAGES)
        self.turn = self.programmed = 0
        self.buffered = collections.OrderedDict()  # page: event of its last transfer

    def write(self, first, end):
        ends = []
        for block in range(first // BLOCK, end // BLOCK):
            if block not in self.collected:
                self.collected.append(block)
            ends.append(self.memory[0])
            if len(self.collected) == PAGE_BLOCKS:
                self.turn += 1
                bank = self.board.idle_bank(self.turn)
                self.memory.popleft()
                self.memory.append(self.board.send(bank, "program", PAGE))
                self.programmed += 1
                for each in self.collected:
                    self.place[each] = bank, self.programmed
                self.collected = []
        return ends

    def where(self, block):
        page = block // PAGE_BLOCKS
        return self.place.get(block, (page % BANKS, -1 - page) if self.filled else None)

    def read(self, first, end):
        wanted = collections.OrderedDict()
        for block in range(first // BLOCK, end // BLOCK):
            if block not in self.collected and self.where(block) is not None:
                wanted.setdefault(self.where(block), []).append(block)
        ends = []
        for (bank, page), blocks in wanted.items():
            if page in self.buffered:
                self.buffered.move_to_end(page)
                ends.append(self.buffered[page])
                continue
            filled = self.board.send(bank, "read", len(blocks) * BLOCK)
            ends.append(filled)
            if not self.read_buffer:
                continue
            if len(blocks) < PAGE_BLOCKS:
                kind = "read" if self.two_senses else "rest"
                filled = self.board.send(bank, kind, PAGE - len(blocks) * BLOCK)
            self.buffered[page] = filled
            if len(self.buffered) > BUFFER_PAGES:
                self.buffered.popitem(last=False)
        return ends


def addresses(pattern, size, span, base, count, seed):
    """Yields the first byte of each request."""
    draw = random.Random(seed)
    for i in range(count):
        yield base + (draw.randrange(span // size) * size if pattern == "random" else i * size % (span - size))


def throughput(ftl, board, op, starts, size, depth):
    """Returns the requests a second of a closed loop."""
    starts = iter(starts)
    outstanding = finished = 0
    more = True
    while more or outstanding:
        while more and outstanding < depth:
            first = next(starts, None)
            if first is None:
                more = False
                break
            ends = [e for e in getattr(ftl, op)(first, first + size) if e.time is None]
            if not ends:
                finished += 1
                continue
            outstanding += 1
            left = [len(ends)]

            def ended(left=left):
                nonlocal outstanding, finished
                left[0] -= 1
                if left[0] == 0:
                    outstanding -= 1
                    finished += 1

            for event in ends:
                event.waiting.append(ended)
        if not board.queue:
            break
        # All that ends in an instant ends before the host reacts.
        board.now = board.queue[0][0]
        while board.queue and board.queue[0][0] <= board.now:
            heapq.heappop(board.queue)[2]()
    return finished / board.now


def size_of(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ftl", choices=("base", "new"))
    parser.add_argument("--op", choices=("read", "write"), default="write")
    parser.add_argument("--pattern", choices=("random", "sequential"), default="random")
    parser.add_argument("--size", type=size_of, default="4K")
    parser.add_argument("--base", type=size_of, default="0", help="first address")
    parser.add_argument("--span", type=size_of, default="8G")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--depth", type=int, default=32, help="outstanding requests")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--no-read-buffer", action="store_true", help="new: only blocks that are asked for")
    parser.add_argument("--two-senses", action="store_true", help="new: the other blocks with a second sense")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    board = Board()
    filled = options.op == "read"
    ftl = (Base(board, filled) if options.ftl == "base"
           else New(board, filled, not options.no_read_buffer, options.two_senses))
    starts = addresses(options.pattern, options.size, options.span, options.base, options.count, options.seed)
    rate = throughput(ftl, board, options.op, starts, options.size, options.depth)
    if options.json:
        print(json.dumps({"requests_per_s": rate}))
    else:
        print(f"{rate:.1f} requests/s, {rate * options.size / 1e6:.2f} MB/s")


if __name__ == "__main__":
    main()
