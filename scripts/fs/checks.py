"""What the checks of semantics.py share."""

import ctypes
import errno
import mmap
import os
import resource

PAGE = mmap.PAGESIZE
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_SYMLINK_FOLLOW = 0x400
libc = ctypes.CDLL(None, use_errno=True)
CHECKS = {}


class Skip(Exception):
    """The file system does not offer it, and may do so."""


def check(f):
    CHECKS[f.__name__.replace("_", "-")] = f
    return f


def same(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: {short(found)}, not {short(expected)}")


def short(value):
    text = repr(value)
    return text if len(text) < 100 else text[:100] + "…"


def new(path, size=0):
    """A new file of `size` bytes of a pattern, open for reading and writing."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, pattern(size))
    return fd


def pattern(size):
    return bytes(i * 7 % 251 for i in range(size))


def fails(expected, what, call):
    try:
        call()
    except OSError as e:
        same(errno.errorcode[e.errno], errno.errorcode[expected], what)
        return
    raise AssertionError(f"{what}: it succeeded")


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        e = ctypes.get_errno()
        raise Skip(f"no fallocate of mode {mode}") if e == errno.EOPNOTSUPP else OSError(e, os.strerror(e))


def renameat2(old, name, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(name), flags) != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def in_child(act):
    """The wait status of a child that does this."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = 1
        try:
            act()
            code = 0
        except BaseException as e:
            print(f"child: {e!r}", flush=True)
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def direct(path, size):
    """The file as it is below the page cache."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as e:
        raise Skip("no O_DIRECT") from e
    room = mmap.mmap(-1, size)
    got = os.readv(fd, [room])
    os.close(fd)
    return room[:got]


