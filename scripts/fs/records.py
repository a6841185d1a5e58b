"""Records that clients write to a file system and acknowledge, and the checks that none is lost.

Each kind does its steps 1, 2, 3, …: `step(n)` returns when step n is acknowledged. `verify(n)` says whether the file
system holds what it has to after n acknowledged steps; step n + 1 may have been done, half or not at all. `plant(n)` names
ways to lose something, for the test of the check.
"""

import mmap
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bounded import Violation, payload  # noqa: E402

PAGE = mmap.PAGESIZE


def record(kind, number, size=None):
    """The bytes of a record; padded with a pattern to `size`."""
    data = f"{kind}:{number}:{payload(number, number)}\n".encode()
    if size is None:
        return data
    return (data * (size // len(data) + 1))[:size]


def mixed(found, old, new):
    """Whether each byte comes from one of two states."""
    return len(found) == len(new) and all(f in (o, n) for f, o, n in zip(found, old, new))


class Kind:
    """What the kinds share."""

    def __init__(self, root, sync=True):
        self.dir, self.sync = root / type(self).__name__.lower(), sync
        self.dir.mkdir(exist_ok=True)

    def durable(self, fd):
        """Waits until what was written is durable, if the file system does not promise that by itself."""
        if self.sync:
            os.fsync(fd)

    def durable_names(self, directory=None):
        if self.sync:
            fd = os.open(directory or self.dir, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(fd)
            os.close(fd)

    def file(self, name, flags=0):
        return os.open(self.dir / name, os.O_RDWR | os.O_CREAT | flags, 0o644)

    def lost(self, what):
        raise Violation(f"{type(self).__name__}: {what}")


class Log(Kind):
    """Records appended to a file; a new file now and then, and the last but one removed."""

    COUNT = 2000

    def path(self, segment):
        return self.dir / f"log-{segment}"

    def step(self, n):
        segment, first = n // self.COUNT, n == 1 or n % self.COUNT == 0
        if first:
            self.path(segment - 2).unlink(missing_ok=True)
        fd = self.file(f"log-{segment}", os.O_APPEND)
        os.write(fd, record("log", n))
        self.durable(fd)
        os.close(fd)
        if first:
            self.durable_names()

    def verify(self, n):
        if n == 0:
            self.path(0).unlink(missing_ok=True)
            return
        last = n // self.COUNT
        for segment in range(max(0, last - 1), last + 2):
            numbers = range(max(1, segment * self.COUNT), min(n, (segment + 1) * self.COUNT - 1) + 1)
            data, at = b"", 0
            if segment == last - 1 and (n + 1) % self.COUNT == 0 and not self.path(segment).exists():
                # The step that was not acknowledged begins a file, and had removed this one.
                continue
            if numbers or self.path(segment).exists():
                data = self.path(segment).read_bytes()
            for number in numbers:
                expected = record("log", number)
                if data[at:at + len(expected)] != expected:
                    self.lost(f"record {number} of {n} acknowledged ones at byte {at} of {len(data)} is "
                              f"{data[at:at + 40]!r}, not {expected[:40]!r}")
                at += len(expected)
            if at == len(data):
                continue
            if segment != (n + 1) // self.COUNT or not record("log", n + 1).startswith(data[at:]):
                self.lost(f"after {n} records there is {data[at:at + 40]!r}")
            # The step that was not acknowledged is done again.
            os.truncate(self.path(segment), at)

    def plant(self, n):
        path = self.path(n // self.COUNT)

        def cut(count):
            os.truncate(path, path.stat().st_size - count)

        def flip():
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        yield "the last record", lambda: cut(len(record("log", n)))
        yield "a part of the last record", lambda: cut(1)
        yield "a bit", flip
        yield "the file", path.unlink


class Slots(Kind):
    """Records that replace each other in place, across pages."""

    COUNT, STRIDE, SIZE = 64, 5000, 4500

    def step(self, n):
        fd = self.file("slots")
        os.pwrite(fd, record("slot", n, self.SIZE), n % self.COUNT * self.STRIDE)
        self.durable(fd)
        os.close(fd)
        if n == 1:
            self.durable_names()

    def expected(self, slot, n):
        """The last step up to n that wrote this slot."""
        last = n - (n - slot) % self.COUNT
        return record("slot", last, self.SIZE) if last > 0 else bytes(self.SIZE)

    def verify(self, n):
        if n == 0:
            return
        fd = self.file("slots")
        for slot in range(self.COUNT):
            found, old = os.pread(fd, self.SIZE, slot * self.STRIDE).ljust(self.SIZE, b"\0"), self.expected(slot, n)
            if found == old:
                continue
            if slot != (n + 1) % self.COUNT or not mixed(found, old, self.expected(slot, n + 1)):
                self.lost(f"slot {slot} after {n} steps holds {found[:40]!r}, not {old[:40]!r}")
        os.close(fd)

    def plant(self, n):
        def older():
            fd = self.file("slots")
            os.pwrite(fd, record("slot", n - self.COUNT, self.SIZE), n % self.COUNT * self.STRIDE)
            os.close(fd)

        def torn():
            fd = self.file("slots")
            os.pwrite(fd, record("slot", n - self.COUNT, self.SIZE)[:2000], n % self.COUNT * self.STRIDE)
            os.close(fd)
        yield "the last write", older
        yield "a part of the last write", torn


class Stores(Kind):
    """Pages of a shared mapping, with msync."""

    COUNT = 64

    def __init__(self, root, sync=True):
        super().__init__(root, sync)
        self.map = None

    def step(self, n):
        if self.map is None:
            fd = self.file("pages")
            os.ftruncate(fd, self.COUNT * PAGE)
            self.durable(fd)
            self.durable_names()
            self.map = mmap.mmap(fd, self.COUNT * PAGE)
            os.close(fd)
        at = n % self.COUNT * PAGE
        self.map[at:at + PAGE] = record("page", n, PAGE)
        self.map.flush(at, PAGE)

    def expected(self, page, n):
        last = n - (n - page) % self.COUNT
        return record("page", last, PAGE) if last > 0 else bytes(PAGE)

    def verify(self, n):
        if n == 0:
            return
        data = (self.dir / "pages").read_bytes()
        if len(data) != self.COUNT * PAGE:
            self.lost(f"the file has {len(data)} bytes")
        for page in range(self.COUNT):
            found, old = data[page * PAGE:(page + 1) * PAGE], self.expected(page, n)
            if found == old:
                continue
            if page != (n + 1) % self.COUNT or not mixed(found, old, self.expected(page, n + 1)):
                self.lost(f"page {page} after {n} steps holds {found[:40]!r}, not {old[:40]!r}")

    def plant(self, n):
        def older():
            with open(self.dir / "pages", "r+b") as f:
                f.seek(n % self.COUNT * PAGE)
                f.write(record("page", n - self.COUNT, PAGE))
        yield "the last store", older


class Replaced(Kind):
    """Files replaced by a rename: the old or the new one is there, whole."""

    COUNT = 16

    def step(self, n):
        fd = self.file("new", os.O_TRUNC)
        os.write(fd, record("file", n))
        self.durable(fd)
        os.close(fd)
        os.rename(self.dir / "new", self.dir / f"{n % self.COUNT}")
        self.durable_names()

    def verify(self, n):
        for name in range(self.COUNT):
            path = self.dir / f"{name}"
            last = n - (n - name) % self.COUNT
            fine = [record("file", last) if last > 0 else None]
            if name == (n + 1) % self.COUNT:
                fine.append(record("file", n + 1))
            found = path.read_bytes() if path.exists() else None
            if found not in fine:
                self.lost(f"file {name} after {n} steps holds {found and found[:40]!r}, not step {last}")
        others = set(os.listdir(self.dir)) - {f"{name}" for name in range(self.COUNT)} - {"new"}
        if others:
            self.lost(f"names that nobody made: {sorted(others)[:5]}")

    def plant(self, n):
        path = self.dir / f"{n % self.COUNT}"
        yield "the last rename", lambda: path.write_bytes(record("file", n - self.COUNT))
        yield "a file", path.unlink
        yield "the contents", lambda: os.truncate(path, 0)
        yield "no name, but a wrong one more", (self.dir / "ghost").touch


class Coming(Kind):
    """Files that come and go: the youngest are there, older ones stay away."""

    COUNT = 50

    def step(self, n):
        fd = self.file(f"{n}", os.O_TRUNC)
        os.write(fd, record("born", n))
        self.durable(fd)
        os.close(fd)
        self.durable_names()
        if n > self.COUNT:
            (self.dir / f"{n - self.COUNT}").unlink(missing_ok=True)
            self.durable_names()

    def verify(self, n):
        there = {int(name) for name in os.listdir(self.dir)}
        needed = set(range(max(1, n - self.COUNT + 1), n + 1)) - {n + 1 - self.COUNT}
        allowed = needed | {n + 1, n + 1 - self.COUNT}
        if needed - there:
            self.lost(f"files that were made are gone after {n} steps: {sorted(needed - there)[:5]}")
        if there - allowed:
            self.lost(f"files that were removed are back after {n} steps: {sorted(there - allowed)[:5]}")
        for number in there:
            found = (self.dir / f"{number}").read_bytes()
            if found != record("born", number) and not (number == n + 1 and record("born", number).startswith(found)):
                self.lost(f"file {number} after {n} steps holds {found[:40]!r}")

    def plant(self, n):
        yield "the last file", (self.dir / f"{n}").unlink
        yield "the contents of a file", lambda: os.truncate(self.dir / f"{n - 3}", 0)
        yield "a removal", lambda: (self.dir / f"{n - self.COUNT}").write_bytes(record("born", n - self.COUNT))


class Token(Kind):
    """A file that goes round three directories: it is in one of them, always."""

    def place(self, n):
        return self.dir / "abc"[n % 3] / "token"

    def step(self, n):
        for number in (n - 1, n):
            self.place(number).parent.mkdir(exist_ok=True)
        if n == 1:
            self.place(0).write_text("token")
        if not self.place(n).exists():
            os.rename(self.place(n - 1), self.place(n))
        self.durable_names(self.place(n).parent)
        self.durable_names(self.place(n - 1).parent)
        if n <= 2:
            self.durable_names()
            fd = os.open(self.place(n), os.O_RDONLY)
            self.durable(fd)
            os.close(fd)

    def verify(self, n):
        found = list(self.dir.glob("*/token"))
        if n == 0:
            for path in found:
                path.unlink()
        elif found not in ([self.place(n)], [self.place(n + 1)]):
            self.lost(f"after {n} steps it is in {[str(path.relative_to(self.dir)) for path in found]}")
        elif found[0].read_text() != "token":
            self.lost("its contents")

    def plant(self, n):
        yield "the token", self.place(n).unlink
        yield "one place of the token", lambda: self.place(n - 1).write_text("token")
        yield "the last rename", lambda: os.rename(self.place(n), self.place(n - 1))


KINDS = [Log, Slots, Stores, Replaced, Coming, Token]
