"""What goes on beside the records: every kind of change, none of it acknowledged.

All bytes of a worker's files are its own letter: another one, after a crash, is somebody else's data.
"""

import errno
import mmap
import os
import random
import shutil

from bounded import Violation

# What happens to a change of a name that another change has taken or removed.
HARMLESS = {errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.ELOOP}


class Noise:
    """A worker in a directory of its own."""

    NAMES, FILES, LIMIT = 5, 15, 1 << 19

    def __init__(self, root, worker):
        self.dir, self.letter = root / f"noise-{worker}", bytes([ord("a") + worker])

    def work(self, seed):
        """Changes things until it is killed, or until the file system is gone."""
        self.dir.mkdir(exist_ok=True)
        rng = random.Random(f"{self.letter}{seed}")
        acts = [self.write] * 6 + [self.truncate, self.allocate, self.store, self.rename, self.link, self.unlink, self.move,
                                   self.symlink, self.attribute, self.remove_tree, self.sync]
        while True:
            try:
                rng.choice(acts)(rng)
            except OSError as e:
                if e.errno not in HARMLESS:
                    raise

    def name(self, rng):
        """A file, or where one may be."""
        directory = self.dir / f"dir-{rng.randrange(self.NAMES)}"
        directory.mkdir(exist_ok=True)
        return directory / f"{rng.randrange(self.FILES)}"

    def write(self, rng):
        fd = os.open(self.name(rng), os.O_RDWR | os.O_CREAT | rng.choice([0, 0, os.O_TRUNC, os.O_APPEND]), 0o644)
        try:
            if os.fstat(fd).st_size < self.LIMIT:
                os.pwrite(fd, self.letter * rng.choice([1, 100, 4096, rng.randrange(100_000)]), rng.randrange(self.LIMIT))
        finally:
            os.close(fd)

    def truncate(self, rng):
        os.truncate(self.name(rng), rng.randrange(self.LIMIT))

    def allocate(self, rng):
        with open(self.name(rng), "r+b") as f:
            os.posix_fallocate(f.fileno(), rng.randrange(self.LIMIT), 1 + rng.randrange(100_000))

    def store(self, rng):
        with open(self.name(rng), "r+b") as f:
            size = os.fstat(f.fileno()).st_size
            if size > 0:
                with mmap.mmap(f.fileno(), size) as m:
                    at = rng.randrange(size)
                    length = min(size - at, 5000)
                    m[at:at + length] = self.letter * length

    def rename(self, rng):
        os.rename(self.name(rng), self.name(rng))

    def link(self, rng):
        os.link(self.name(rng), self.name(rng), follow_symlinks=False)

    def unlink(self, rng):
        self.name(rng).unlink()

    def move(self, rng):
        os.rename(self.dir / f"dir-{rng.randrange(self.NAMES)}", self.dir / f"moved-{rng.randrange(3)}" / "dir")

    def symlink(self, rng):
        os.symlink("nowhere/" * rng.randrange(1, 100), self.name(rng))

    def attribute(self, rng):
        os.setxattr(self.name(rng), "user.noise", self.letter * rng.randrange(1000), follow_symlinks=True)

    def remove_tree(self, rng):
        if rng.random() < 0.1:
            moved = self.dir / f"moved-{rng.randrange(3)}"
            shutil.rmtree(moved, ignore_errors=True)
            moved.mkdir(exist_ok=True)

    def sync(self, rng):
        fd = os.open(self.name(rng), os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def verify(self):
        """All can be read, and holds nothing of others."""
        allowed = self.letter + b"\0"
        if not self.dir.exists():
            return

        def unreadable(error):
            raise Violation(f"noise: {error}")
        for at, _, files in os.walk(self.dir, onerror=unreadable):
            for name in files:
                path = os.path.join(at, name)
                if os.path.islink(path):
                    if not os.readlink(path).startswith("nowhere"):
                        raise Violation(f"noise: {path} points to {os.readlink(path)[:40]!r}")
                    continue
                with open(path, "rb") as f:
                    foreign = f.read().translate(None, allowed)
                if foreign:
                    raise Violation(f"noise: {path} holds {foreign[:40]!r}, which is not its own")

    def plant(self, _):
        """Ways to break it, for the test of the check."""
        victim = self.dir / "dir-0" / "planted"

        def foreign():
            victim.parent.mkdir(exist_ok=True)
            victim.write_bytes(self.letter * 100 + b"X")
        yield "foreign bytes", foreign
        yield "a foreign link", lambda: os.symlink("X", self.dir / "planted")
