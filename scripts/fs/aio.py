"""Asynchronous I/O of Linux (io_setup(2) and the rest, without a library), and aligned buffers."""

import ctypes
import mmap
import os

from checks import libc

SETUP, DESTROY, GETEVENTS, SUBMIT = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}[os.uname().machine]
WRITE = 1


class Iocb(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("rw_flags", ctypes.c_uint32),
                ("opcode", ctypes.c_uint16), ("priority", ctypes.c_int16), ("fd", ctypes.c_uint32),
                ("buffer", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
                ("reserved", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("resfd", ctypes.c_uint32)]


class Event(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("iocb", ctypes.c_uint64), ("result", ctypes.c_int64),
                ("result2", ctypes.c_int64)]


def call(number, *arguments):
    done = libc.syscall(ctypes.c_long(number), *arguments)
    if done < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return done


class Buffer:
    """Memory at the start of a page, as O_DIRECT wants it."""

    def __init__(self, data):
        self.map = mmap.mmap(-1, len(data))
        self.map[:] = data
        self.view = (ctypes.c_char * len(data)).from_buffer(self.map)
        self.address = ctypes.addressof(self.view)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.view
        self.map.close()


class Queue:
    """Requests that are under way at a time: at most `depth`."""

    def __init__(self, depth):
        self.context = ctypes.c_uint64(0)
        call(SETUP, ctypes.c_uint(depth), ctypes.byref(self.context))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        call(DESTROY, self.context)

    def start_all(self, fd, buffer, offsets, length):
        """Submits writes of the first `length` bytes of a buffer to all these places."""
        requests = [Iocb(opcode=WRITE, fd=fd, buffer=buffer.address, bytes=length, offset=at) for at in offsets]
        all_of_them = (ctypes.c_void_p * len(offsets))(*(ctypes.addressof(r) for r in requests))
        done = 0
        while done < len(offsets):
            rest = ctypes.byref(all_of_them, done * ctypes.sizeof(ctypes.c_void_p))
            done += call(SUBMIT, self.context, ctypes.c_long(len(offsets) - done), rest)

    def finish(self):
        """Waits for one, and returns how many bytes it wrote."""
        event = Event()
        call(GETEVENTS, self.context, ctypes.c_long(1), ctypes.c_long(1), ctypes.byref(event), None)
        if event.result < 0:
            raise OSError(-event.result, os.strerror(-event.result))
        return event.result

    def write(self, fd, buffer, offset, length):
        self.start_all(fd, buffer, [offset], length)
        if self.finish() != length:
            raise OSError(0, "a short write")


def pwrite_aligned(fd, data):
    with Buffer(data) as buffer:
        done = libc.pwrite(fd, ctypes.c_void_p(buffer.address), ctypes.c_size_t(len(data)), ctypes.c_long(0))
        if done != len(data):
            e = ctypes.get_errno() if done < 0 else 0
            raise OSError(e, os.strerror(e) if e else f"{done} of {len(data)} bytes were written")
