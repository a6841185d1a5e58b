"""What a volume may contain: a model of its promises, for the scripts that kill servers.

A sector of 512 bytes is zeros (version 0), or states its number and its version, so that it can be computed again. The
state of a block of 4 KiB is the tuple of the versions of its eight sectors. Of each block, the shadow keeps the states
that a read may return now, and those that a restart may return after a crash.
"""

import random
import struct

from bounded import Violation

SECTOR, BLOCK = 512, 4096
SECTORS = BLOCK // SECTOR
ZEROS = (0,) * SECTORS
HEADER = struct.Struct("<8sIII")
MAGIC = b"frit-liv"
FILLER = SECTOR - HEADER.size


def filler():
    """Bytes of which half can be compressed."""
    rng, parts = random.Random(7), []
    for _ in range(2048):
        parts.append(rng.randbytes(256))
        parts.append(rng.randbytes(1) * 256)
    return b"".join(parts)


POOL = filler()


def sector(block, index, version):
    """The contents of a sector."""
    if version == 0:
        return bytes(SECTOR)
    at = (block * 7919 + version * 104_729 + index * 1031) % (len(POOL) - FILLER)
    return HEADER.pack(MAGIC, block, index, version) + POOL[at:at + FILLER]


def contents(block, state):
    """The contents of a block."""
    return b"".join(sector(block, i, v) for i, v in enumerate(state))


def versions(block, data):
    """The state that a block states of itself; a sector that is neither zeros nor one of its own has version None."""
    found = []
    for i in range(SECTORS):
        part = data[i * SECTOR:(i + 1) * SECTOR]
        version = 0 if not any(part) else HEADER.unpack_from(part)[3]
        found.append(version if part == sector(block, i, version) else None)
    return tuple(found)


class Mismatch(Violation):
    """Contents that are not allowed."""


class Block:
    """The states of a block: `now` by the last acknowledged request, since `since`; `past` ones that a crash may bring
    back, each with the moment from which it counted; `pending` ones of a request without an answer. `torn`: a request
    failed, which leaves each sector old or new. `zeroing`: the pending request writes zeros."""

    __slots__ = ("now", "since", "past", "pending", "torn", "zeroing", "next")

    def __init__(self):
        self.now, self.since, self.past, self.pending, self.next = (ZEROS,), 0, [], (), 1
        self.torn = self.zeroing = False


class Shadow:
    """All blocks of a volume that clients use. One client at a time writes to a block; the caller holds a lock."""

    def __init__(self, durable, atomic, atomic_zeros):
        # "ack" or "flush"; 4096 or 512, of writes and of discards and zeros.
        self.durable, self.atomic, self.atomic_zeros = durable, atomic, atomic_zeros
        self.blocks, self.unflushed, self.moment = {}, set(), 0

    def block(self, number):
        found = self.blocks.get(number)
        if found is None:
            found = self.blocks[number] = Block()
        return found

    def begin(self, first, end, zeros=False):
        """A write to the sectors from `first` to before `end`, all in blocks without a request: its bytes."""
        data = []
        for number in range(first // SECTORS, (end - 1) // SECTORS + 1):
            b = self.block(number)
            version = 0 if zeros else b.next
            b.next += 1
            lo, hi = max(first - number * SECTORS, 0), min(end - number * SECTORS, SECTORS)
            b.zeroing = zeros
            b.pending = tuple({s[:lo] + (version,) * (hi - lo) + s[hi:] for s in b.now})
            data.extend(sector(number, i, version) for i in range(lo, hi))
        return b"".join(data)

    def acknowledged(self, first, end, durable=False):
        """The write is done, and durable if it was told to be."""
        self.moment += 1
        for number in range(first // SECTORS, (end - 1) // SECTORS + 1):
            b = self.blocks[number]
            b.past.append((b.since, b.now))
            b.now, b.since, b.pending = b.pending, self.moment, ()
            if durable and first <= number * SECTORS and (number + 1) * SECTORS <= end:
                b.past = []
            if b.past:
                self.unflushed.add(number)

    def failed(self, first, end):
        """The write got an error: each sector is old or new."""
        for number in range(first // SECTORS, (end - 1) // SECTORS + 1):
            b = self.blocks[number]
            b.now, b.pending, b.torn = tuple(set(b.now) | set(b.pending)), (), True

    def flushed(self, moment):
        """A flush is acknowledged that was sent at `moment`."""
        for number in list(self.unflushed):
            b = self.blocks[number]
            if b.since <= moment:
                b.past = []
                self.unflushed.discard(number)
            else:
                last = max((i for i, (since, _) in enumerate(b.past) if since <= moment), default=0)
                del b.past[:last]

    def closed(self):
        """The volume was closed: everything is durable."""
        self.flushed(self.moment)

    def allows(self, block, states, found):
        """Whether one of `states` is `found`, or sectors of several where writes can be torn."""
        if found in states:
            return True
        atomic = self.atomic_zeros if block.zeroing and block.pending else self.atomic
        tearable = block.torn or atomic == SECTOR
        return tearable and all(any(s[i] == v for s in states) for i, v in enumerate(found))

    def look(self, number, data, crashed):
        """Compares a block with what it may contain: after a crash, or while its server runs."""
        b = self.block(number)
        if len(b.now) == 1 and not b.pending and not (crashed and b.past) and data == contents(number, b.now[0]):
            return
        states = list(b.now)
        if crashed:
            states += b.pending
            if self.durable == "flush":
                states += [s for _, past in b.past for s in past]
        found = versions(number, data)
        if not self.allows(b, states, found):
            raise Mismatch(
                f"block {number} (byte {number * BLOCK}) has versions {found}; {'after a kill ' if crashed else ''}"
                f"allowed are {sorted(set(states))[:6]}, acknowledged is {sorted(set(b.now))[:3]}")
        if crashed:
            # What was found has to stay.
            b.past, b.pending, b.since = [], (), self.moment
            self.unflushed.discard(number)
        elif len(b.now) > 1:
            # What was read stays, as if it had been acknowledged; a crash can take it back until a flush.
            self.moment += 1
            b.past.append((b.since, b.now))
            b.since = self.moment
            self.unflushed.add(number)
        b.now, b.torn = (found,), False
