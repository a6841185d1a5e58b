#!/usr/bin/env python3
"""Bytes that one loop of a filebench personality reads and writes, by a model of its file set.

  scripts/models/filebench.py fileserver          prints bytes read and bytes written a loop
  scripts/models/filebench.py fileserver 30000    the same, with 30 000 files

Written from filebench's workloads/*.f and fileset.c: sizes have a gamma distribution of shape 1.5; files are
picked in rotation, with one position for the files that exist and one for those that do not; a file that a thread
has open is not deleted; an append has 0 to just below its size, uniformly distributed. Each step is one operation
of a thread drawn at random. There is no file system. The bytes written by a loop have a closed form (the mean size
plus half an append for each append); those read depend on how often a file was appended to before it is deleted.
"""

import random
import sys

FILESERVER = "create write close open append close open read close delete stat"
WEBSERVER = "open read close " * 10 + "log"
VARMAIL = "delete create append close open read append close open read close"

# name: files, mean size, share that exists at the start, threads, loop (without fsync)
PERSONALITIES = {
    "fileserver": (10_000, 128 << 10, 0.8, 50, FILESERVER.split()),
    "webserver": (1_000, 16 << 10, 1.0, 100, WEBSERVER.split()),
    "varmail": (1_000, 16 << 10, 0.8, 16, VARMAIL.split()),
}
APPEND = 16 << 10
LOOPS = 60_000


class Model:
    def __init__(self, files, size, prealloc, threads, loop):
        self.rng = random.Random(1)
        self.planned = [int(self.rng.gammavariate(1.5, size / 1.5)) for _ in range(files)]
        # The current size of each file; None if it does not exist.
        self.size = [p if self.rng.random() < prealloc else None for p in self.planned]
        self.open_by = [0] * files
        self.position = {True: 0, False: 0}
        self.loop = loop
        self.threads = [[0, None] for _ in range(threads)]
        self.read = self.written = 0

    def pick(self, exists, closed=False):
        n = len(self.size)
        for step in range(n):
            file = (self.position[exists] + step) % n
            if (self.size[file] is not None) == exists and not (closed and self.open_by[file]):
                self.position[exists] = file + 1
                return file
        sys.exit("no file is left")

    def step(self):
        thread = self.rng.choice(self.threads)
        op, file = self.loop[thread[0]], thread[1]
        thread[0] = (thread[0] + 1) % len(self.loop)
        if op in ("create", "open"):
            thread[1] = file = self.pick(op == "open")
            self.open_by[file] += 1
            if op == "create":
                self.size[file] = 0
        elif op == "close":
            self.open_by[file] -= 1
        elif op == "write":
            self.size[file] = self.planned[file]
            self.written += self.planned[file]
        elif op == "append":
            added = self.rng.randrange(APPEND)
            self.size[file] += added
            self.written += added
        elif op == "log":
            self.written += self.rng.randrange(APPEND)
        elif op == "read":
            self.read += self.size[file]
        elif op == "delete":
            self.size[self.pick(True, closed=True)] = None
        elif op == "stat":
            self.pick(True)


def main():
    files, size, prealloc, threads, loop = PERSONALITIES[sys.argv[1]]
    files = int(sys.argv[2]) if len(sys.argv) > 2 else files
    model = Model(files, size, prealloc, threads, loop)
    for _ in range(files * len(loop)):
        model.step()
    model.read = model.written = 0
    for _ in range(LOOPS * len(loop)):
        model.step()
    print(model.read / LOOPS, model.written / LOOPS)


main()
