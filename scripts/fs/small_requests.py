#!/usr/bin/env python3
"""Times of small requests of one program, in microseconds, in each of some directories.

    small_requests.py DIRECTORY... [--rounds 3]

The directories take turns; each figure is the lowest of the rounds. What is made is removed.
"""
import argparse
import mmap
import os
import shutil
import tempfile
import time

FILES = 2000
PAGE = 4096


def each(count, run):
    """Microseconds of a call of `run`, which gets the number of the call."""
    begin = time.perf_counter()
    for number in range(count):
        run(number)
    return (time.perf_counter() - begin) / count * 1e6


def measure(root):
    fd = os.open(f"{root}/file", os.O_RDWR | os.O_CREAT)
    page = b"x" * PAGE
    os.pwrite(fd, page * FILES, 0)
    direct = os.open(f"{root}/file", os.O_RDWR | os.O_DIRECT)
    buffer = mmap.mmap(-1, PAGE)
    result = {
        "write 4 KiB": each(FILES, lambda i: os.pwrite(fd, page, i * PAGE)),
        "write 100 B": each(FILES, lambda i: os.pwrite(fd, page[:100], i * PAGE)),
        "read 4 KiB, O_DIRECT": each(FILES, lambda i: os.preadv(direct, [buffer], i * PAGE)),
        "write 4 KiB, O_DIRECT": each(FILES, lambda i: os.pwritev(direct, [buffer], i * PAGE)),
        "create, close": each(FILES, lambda i: os.close(os.open(f"{root}/{i}", os.O_CREAT | os.O_WRONLY))),
        "rename": each(FILES, lambda i: os.rename(f"{root}/{i}", f"{root}/r{i}")),
        "unlink": each(FILES, lambda i: os.unlink(f"{root}/r{i}")),
        "mkdir": each(FILES, lambda i: os.mkdir(f"{root}/d{i}")),
        "rmdir": each(FILES, lambda i: os.rmdir(f"{root}/d{i}")),
    }
    os.close(fd)
    os.close(direct)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="+", metavar="DIRECTORY")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    best = {}
    for _ in range(args.rounds):
        for directory in args.directories:
            root = tempfile.mkdtemp(dir=directory)
            try:
                for what, micros in measure(root).items():
                    best[what, directory] = min(micros, best.get((what, directory), micros))
            finally:
                shutil.rmtree(root)
    width = max(12, *(len(directory) for directory in args.directories))
    print(f"{'µs':22}" + "".join(f"{directory:>{width + 2}}" for directory in args.directories))
    for what in dict.fromkeys(what for what, _ in best):
        print(f"{what:22}" + "".join(f"{best[what, directory]:{width + 2}.1f}" for directory in args.directories))


if __name__ == "__main__":
    main()
