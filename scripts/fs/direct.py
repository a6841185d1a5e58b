"""Checks of direct writes beside readers of the page cache, and of the times of files that are written through maps."""

import fcntl
import mmap
import os
import time

import aio
from checks import PAGE, check, new, same

# Bytes of one write, which takes much longer than a read of one page; how many there are; how often.
LARGE, WRITES, ROUNDS = 1 << 20, 4, 200


def beside_reads(at, flags, turned):
    """Reads pages through the page cache while direct writes of them are under way: what is read then may be old,
    what is read when the writes are done may not. A fault of a map is a read of one page that nothing holds up."""
    size = WRITES * LARGE
    (at / "f").write_bytes(bytes(size))
    direct, cached = os.open(at / "f", os.O_RDWR | flags), os.open(at / "f", os.O_RDONLY)
    if turned:
        fcntl.fcntl(direct, fcntl.F_SETFL, os.O_DIRECT)
    with aio.Queue(WRITES) as queue, mmap.mmap(cached, size, prot=mmap.PROT_READ) as m:
        m.madvise(mmap.MADV_RANDOM)
        for number in range(1, ROUNDS + 1):
            word = number.to_bytes(8, "little")
            with aio.Buffer(word * (LARGE // 8)) as buffer:
                queue.start_all(direct, buffer, range(0, size, LARGE), LARGE)
                for last in range(size - 1, 0, -LARGE):
                    m[last]
                for _ in range(WRITES):
                    same(queue.finish(), LARGE, "a write")
            old = [page for page in range(size // PAGE) if os.pread(cached, 8, page * PAGE) != word]
            same(old, [], f"pages that are old in the page cache after round {number}")
    for fd in (direct, cached):
        os.close(fd)


@check
def asynchronous_direct_writes_beside_reads(at):
    beside_reads(at, os.O_DIRECT, False)


@check
def turned_direct_writes_beside_reads(at):
    beside_reads(at, 0, True)


@check
def stores_move_times(at):
    """As write(2) does, a store into a shared map moves the times of the file, by msync(2) or the unmapping at the latest."""
    fd = new(at / "f", 2 * PAGE)
    os.fsync(fd)
    for page in range(2):
        before = os.stat(at / "f")
        # Clocks of file systems have steps of some milliseconds.
        time.sleep(0.05)
        with mmap.mmap(fd, 2 * PAGE) as m:
            m[page * PAGE:page * PAGE + 3] = b"new"
            m.flush()
        after = os.stat(at / "f")
        same(after.st_mtime_ns > before.st_mtime_ns, True, f"mtime moved by a store into page {page}")
        same(after.st_ctime_ns > before.st_ctime_ns, True, f"ctime moved by a store into page {page}")


@check
def reads_of_maps_move_no_times(at):
    fd = new(at / "f", PAGE)
    os.fsync(fd)
    before = os.stat(at / "f")
    time.sleep(0.05)
    with mmap.mmap(fd, PAGE) as m:
        same(m[:4], bytes(i * 7 % 251 for i in range(4)), "the map")
        m.flush()
    same(os.stat(at / "f").st_mtime_ns, before.st_mtime_ns, "mtime after a read of a map")
