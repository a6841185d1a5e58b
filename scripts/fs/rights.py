"""Checks of rights that a write takes from a program: set-ID bits and capabilities. A member of the file's group
overwrites a set-user-ID program of root in every way there is, and must not run as root afterwards."""

import errno
import fcntl
import os
import shutil
import stat
import subprocess

import aio
from checks import KEEP_SIZE, PAGE, PUNCH_HOLE, ZERO_RANGE, Skip, check, fallocate, same

USER = 65_534
MODE = 0o6775
# vfs_cap_data of linux/capability.h, revision 2, with nothing in it.
CAPABILITY = b"\0\0\0\2" + bytes(16)


def padded(data):
    return data + bytes(-len(data) % PAGE + 16 * PAGE)


def overwrite(path, data, flags=0):
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        aio.pwrite_aligned(fd, data)
    finally:
        os.close(fd)


def buffered(path, data):
    overwrite(path, data)


def direct(path, data):
    overwrite(path, data, os.O_DIRECT)


def cut_then_direct(path, data):
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
    overwrite(path, data, os.O_DIRECT)


def cut_and_direct(path, data):
    overwrite(path, data, os.O_DIRECT | os.O_TRUNC)


def synchronous(path, data):
    overwrite(path, data, os.O_SYNC)


def turned_direct(path, data):
    fd = os.open(path, os.O_WRONLY)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)
    aio.pwrite_aligned(fd, data)
    os.close(fd)


def asynchronous_direct(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_DIRECT)
    with aio.Queue(8) as queue, aio.Buffer(data) as buffer:
        queue.write(fd, buffer, 0, len(data))
    os.close(fd)


def append(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"more")
    os.close(fd)


def spliced(path, data):
    fd = os.open(path, os.O_WRONLY)
    reader, writer = os.pipe()
    os.write(writer, data[:PAGE])
    os.splice(reader, fd, PAGE, offset_dst=0)
    for each in (fd, reader, writer):
        os.close(each)


def copied(path, data):
    fd = os.open(path, os.O_WRONLY)
    source = os.open(path.with_name("source"), os.O_RDONLY)
    same(os.copy_file_range(source, fd, PAGE, 0, 0), PAGE, "copy_file_range")
    os.close(fd)
    os.close(source)


def allocated(mode):
    def act(path, data):
        fd = os.open(path, os.O_WRONLY)
        # Behind the program, which therefore still runs.
        fallocate(fd, mode, len(data) - PAGE, 2 * PAGE)
        os.close(fd)
    return act


def truncated(path, data):
    os.truncate(path, len(data) - 100)


WAYS = {
    "buffered": buffered, "direct": direct, "cut then direct": cut_then_direct, "cut and direct": cut_and_direct,
    "synchronous": synchronous, "turned direct": turned_direct, "asynchronous direct": asynchronous_direct,
    "append": append, "splice": spliced, "copy_file_range": copied, "truncate": truncated,
    "fallocate": allocated(0), "fallocate keep": allocated(KEEP_SIZE),
    "punch": allocated(PUNCH_HOLE | KEEP_SIZE), "zero": allocated(ZERO_RANGE),
}


def as_user(act):
    """Runs this as a user who is in the file's group only; an error becomes one of the caller's."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        word = b""
        try:
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            act()
        except Skip as e:
            word = b"skip " + str(e).encode()
        except BaseException as e:
            word = b"%d %s" % (getattr(e, "errno", None) or 0, repr(e).encode())
        os.write(writer, word)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        word = said.read().decode()
    os.waitpid(pid, 0)
    if word.startswith("skip "):
        raise Skip(word[5:])
    if word:
        number, _, text = word.partition(" ")
        raise OSError(int(number), text)


def program(path, data):
    """A set-user-ID program of root that says as whom it runs; the group may write it."""
    path.write_bytes(data)
    os.chown(path, 0, USER)
    os.chmod(path, MODE)
    try:
        os.setxattr(path, "security.capability", CAPABILITY)
    except OSError as e:
        if e.errno != errno.EOPNOTSUPP:
            raise


def runs_as(path):
    done = subprocess.run([path, "-u"], user=USER, group=USER, extra_groups=[], capture_output=True)
    return int(done.stdout) if done.returncode == 0 else None


def ready(at):
    if os.geteuid() != 0:
        raise Skip("it takes root")
    at.chmod(0o755)
    os.umask(0o022)
    data = padded(open(shutil.which("id"), "rb").read())
    source = at / "source"
    source.write_bytes(data)
    return at / "program", data


def lost(path, way):
    found = os.stat(path).st_mode
    same(oct(stat.S_IMODE(found)), oct(MODE & 0o777), f"the mode after {way}")
    try:
        os.getxattr(path, "security.capability")
        raise AssertionError(f"the capability is there after {way}")
    except OSError as e:
        if e.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
            raise


@check
def writes_take_set_id_bits(at):
    path, data = ready(at)
    wrong = []
    for way, act in WAYS.items():
        path.unlink(missing_ok=True)
        program(path, data)
        before = runs_as(path)
        try:
            as_user(lambda: act(path, data))
        except Skip:
            continue
        # What runs it looks at no attribute before: the kernel's own idea of the mode counts.
        after = runs_as(path)
        if after not in (USER, None):
            wrong.append(f"{way}: runs as {after}")
        lost(path, way)
        same(before, USER if os.statvfs(path).f_flag & os.ST_NOSUID else 0, "as whom the program ran before")
    if wrong:
        raise AssertionError("programs keep rights: " + ", ".join(wrong))


@check
def direct_handle_from_before_set_id_bits(at):
    """Opened with O_DIRECT while it was an ordinary file: the write takes the bits, or is refused."""
    path, data = ready(at)
    path.write_bytes(data)
    os.chown(path, 0, USER)
    os.chmod(path, 0o775)
    for flags in (0, os.O_TRUNC):
        fd = os.open(path, os.O_WRONLY | os.O_DIRECT)
        os.chmod(path, MODE)

        def act():
            if flags:
                os.close(os.open(path, os.O_WRONLY | flags))
            aio.pwrite_aligned(fd, data)
        refused = False
        try:
            as_user(act)
        except OSError as e:
            same(e.errno, errno.EPERM, f"the write: {e}")
            refused = True
        os.close(fd)
        after = runs_as(path)
        same(refused or after in (USER, None), True, f"it runs as {after} after the write")
        if not refused:
            lost(path, "a write of an earlier handle")
        path.write_bytes(data)


@check
def superuser_keeps_set_id_bits(at):
    path, data = ready(at)
    for flags in (0, os.O_DIRECT):
        program(path, data)
        overwrite(path, data, flags)
        same(oct(stat.S_IMODE(os.stat(path).st_mode)), oct(MODE), "the mode after a write by root")
        try:
            os.getxattr(path, "security.capability")
            raise AssertionError("the capability is there after a write by root")
        except OSError as e:
            if e.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
                raise
