"""Checks of shared mappings beside read and write, truncation and holes. Each gets an empty directory."""

import ctypes
import mmap
import os
import signal

from checks import KEEP_SIZE, PAGE, PUNCH_HOLE, ZERO_RANGE, Skip, check, direct, fallocate, in_child, libc, new, \
    pattern, same


@check
def map_seen_by_read(at):
    fd = new(at / "f", 5 * PAGE)
    with mmap.mmap(fd, 5 * PAGE) as m:
        m[PAGE - 3:PAGE + 3] = b"mapped"
        same(os.pread(fd, 6, PAGE - 3), b"mapped", "read after a store")
        other = os.open(at / "f", os.O_RDONLY)
        same(os.pread(other, 6, PAGE - 3), b"mapped", "read through another handle")


@check
def write_seen_by_map(at):
    fd = new(at / "f", 5 * PAGE)
    with mmap.mmap(fd, 5 * PAGE) as m:
        same(m[:], pattern(5 * PAGE), "the map at first")
        os.pwrite(fd, b"written", 2 * PAGE - 4)
        same(m[2 * PAGE - 4:2 * PAGE + 3], b"written", "the map after a write")
        with open(at / "f", "r+b", buffering=0) as other:
            other.seek(100)
            other.write(b"elsewhere")
        same(m[100:109], b"elsewhere", "the map after a write through another handle")


@check
def map_shared_by_processes(at):
    fd = new(at / "f", PAGE)
    with mmap.mmap(fd, PAGE) as m:
        def child():
            with open(at / "f", "r+b") as f, mmap.mmap(f.fileno(), PAGE) as theirs:
                theirs[10:15] = b"child"
        same(in_child(child), 0, "the child")
        same(m[10:15], b"child", "the map of the parent")


@check
def msync_reaches_the_file(at):
    fd = new(at / "f", 8 * PAGE)
    os.fsync(fd)
    with mmap.mmap(fd, 8 * PAGE) as m:
        m[3 * PAGE:3 * PAGE + 6] = b"synced"
        m.flush(3 * PAGE, PAGE)
        expected = bytearray(pattern(8 * PAGE))
        expected[3 * PAGE:3 * PAGE + 6] = b"synced"
        same(direct(at / "f", 8 * PAGE), bytes(expected), "a direct read after msync")


@check
def map_then_fsync_and_close(at):
    fd = new(at / "f", 4 * PAGE)
    m = mmap.mmap(fd, 4 * PAGE)
    os.close(fd)
    m[PAGE:PAGE + 5] = b"later"
    m.close()
    same((at / "f").read_bytes()[PAGE:PAGE + 5], b"later", "the file after its map is gone")


@check
def private_map_stays_private(at):
    fd = new(at / "f", PAGE)
    with mmap.mmap(fd, PAGE, flags=mmap.MAP_PRIVATE) as m:
        m[:5] = b"never"
        same(m[:5], b"never", "the private map")
        same(os.pread(fd, 5, 0), pattern(5), "the file")


@check
def direct_write_seen_by_map(at):
    fd = new(at / "f", 4 * PAGE)
    os.fsync(fd)
    with mmap.mmap(fd, 4 * PAGE) as m:
        same(m[PAGE], pattern(PAGE + 1)[PAGE], "the map at first")
        try:
            raw = os.open(at / "f", os.O_RDWR | os.O_DIRECT)
        except OSError as e:
            raise Skip("no O_DIRECT") from e
        room = mmap.mmap(-1, PAGE)
        room[:] = b"d" * PAGE
        same(os.pwritev(raw, [room], PAGE), PAGE, "a direct write")
        same(os.pread(fd, PAGE, PAGE), b"d" * PAGE, "a buffered read after a direct write")
        same(m[PAGE:2 * PAGE], b"d" * PAGE, "the map after a direct write")


@check
def truncate_under_map(at):
    fd = new(at / "f", 4 * PAGE)
    with mmap.mmap(fd, 4 * PAGE) as m:
        os.ftruncate(fd, PAGE + 100)
        same(m[PAGE:PAGE + 100], pattern(PAGE + 100)[PAGE:], "what is left")
        same(m[PAGE + 100:2 * PAGE], bytes(PAGE - 100), "the rest of the last page")
        status = in_child(lambda: m[3 * PAGE])
        same(os.WIFSIGNALED(status) and os.WTERMSIG(status), signal.SIGBUS, "what lies beyond the end")
        os.ftruncate(fd, 4 * PAGE)
        same(m[PAGE + 100:4 * PAGE], bytes(3 * PAGE - 100), "the file extended again")


@check
def tail_of_the_last_page_is_not_kept(at):
    fd = new(at / "f", 100)
    with mmap.mmap(fd, 0) as _, open(at / "f", "r+b") as f:
        m = mmap.mmap(f.fileno(), 100)
        # Stores beyond the end, in the last page, are seen by nobody once the file grows.
        libc.memset(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)) + 100), 0x55, 50)
        os.ftruncate(fd, PAGE)
        same(os.pread(fd, PAGE, 0), pattern(100) + bytes(PAGE - 100), "the file after it has grown")


@check
def extend_under_map(at):
    fd = new(at / "f", PAGE)
    with mmap.mmap(fd, PAGE) as m:
        os.ftruncate(fd, 3 * PAGE)
        m.resize(3 * PAGE)
        same(m[PAGE:], bytes(2 * PAGE), "the new part")
        m[2 * PAGE:2 * PAGE + 3] = b"new"
        same(os.pread(fd, 3, 2 * PAGE), b"new", "a store into the new part")


@check
def punch_under_map(at):
    fd = new(at / "f", 4 * PAGE)
    with mmap.mmap(fd, 4 * PAGE) as m:
        same(m[0], 0, "the map at first")
        fallocate(fd, PUNCH_HOLE | KEEP_SIZE, PAGE - 10, PAGE + 20)
        expected = pattern(PAGE - 10) + bytes(PAGE + 20) + pattern(4 * PAGE)[2 * PAGE + 10:]
        same(m[:], expected, "the map with a hole")
        same(os.pread(fd, 4 * PAGE, 0), expected, "the file with a hole")


@check
def zero_range_under_map(at):
    fd = new(at / "f", 4 * PAGE)
    with mmap.mmap(fd, 4 * PAGE) as m:
        fallocate(fd, ZERO_RANGE, 10, 2 * PAGE)
        expected = pattern(10) + bytes(2 * PAGE) + pattern(4 * PAGE)[2 * PAGE + 10:]
        same(m[:], expected, "the map with zeros")


@check
def store_changes_mtime(at):
    fd = new(at / "f", PAGE)
    os.utime(at / "f", (1000, 1000))
    with mmap.mmap(fd, PAGE) as m:
        m[0] = 1
        m.flush()
    if os.fstat(fd).st_mtime < 2000:
        raise AssertionError("the time of change is the old one after a store and msync")
