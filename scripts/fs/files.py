"""Checks of names, links, holes, directories, attributes, and of a full disk. Each gets an empty directory."""

import errno
import mmap
import os
import random
import shutil
import subprocess
import time

from checks import AT_SYMLINK_FOLLOW, KEEP_SIZE, PAGE, RENAME_EXCHANGE, RENAME_NOREPLACE, Skip, check, fails, fallocate, \
    in_child, libc, new, pattern, renameat2, same


@check
def unlinked_file_lives_on(at):
    fd = new(at / "f", 3 * PAGE)
    with mmap.mmap(fd, 3 * PAGE) as m:
        os.unlink(at / "f")
        same(os.fstat(fd).st_nlink, 0, "links")
        new(at / "f", 10)
        for number in range(200):
            os.close(new(at / f"other-{number}", 100))
        m[PAGE] = 0xAA
        os.pwrite(fd, b"still here", 2 * PAGE)
        same(os.pread(fd, 1, PAGE), b"\xaa", "a store")
        same(os.pread(fd, 10, 2 * PAGE), b"still here", "a write")
        os.ftruncate(fd, 10 * PAGE)
        same(os.fstat(fd).st_size, 10 * PAGE, "its size")
        os.fchmod(fd, 0o600)
        same(os.fstat(fd).st_mode & 0o777, 0o600, "its mode")
        same((at / "f").read_bytes(), pattern(10), "the file that has its name now")


@check
def removed_directory_is_empty(at):
    (at / "d").mkdir()
    fd = os.open(at / "d", os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir(at / "d")
    same(os.listdir(fd), [], "entries")
    fails(errno.ENOENT, "a new file in it", lambda: os.open("f", os.O_CREAT | os.O_RDWR, dir_fd=fd))


@check
def rename_over_an_open_file(at):
    old, victim = new(at / "new", 10), new(at / "name", 20)
    os.rename(at / "new", at / "name")
    same(os.pread(victim, 100, 0), pattern(20), "the replaced file")
    same(os.fstat(victim).st_nlink, 0, "its links")
    same((at / "name").read_bytes(), pattern(10), "the name")
    same(os.fstat(old).st_ino, (at / "name").stat().st_ino, "the inode")


@check
def rename_flags(at):
    (at / "a").write_text("a")
    (at / "d").mkdir()
    (at / "d" / "b").write_text("b")
    try:
        renameat2(at / "a", at / "d", RENAME_EXCHANGE)
    except OSError as e:
        raise (Skip("no RENAME_EXCHANGE") if e.errno == errno.EINVAL else e) from e
    same((at / "d").read_text(), "a", "the exchanged file")
    same((at / "a" / "b").read_text(), "b", "the exchanged directory")
    fails(errno.EEXIST, "RENAME_NOREPLACE", lambda: renameat2(at / "d", at / "a", RENAME_NOREPLACE))
    renameat2(at / "d", at / "c", RENAME_NOREPLACE)
    same(sorted(os.listdir(at)), ["a", "c"], "names")


@check
def rename_into_itself(at):
    (at / "a" / "b").mkdir(parents=True)
    fails(errno.EINVAL, "into its own descendant", lambda: os.rename(at / "a", at / "a" / "b" / "c"))
    (at / "x").mkdir()
    os.rename(at / "x", at / "a" / "x")
    same((at / "a").stat().st_nlink in (1, 4), True, "links of a directory with two in it (or 1: not counted)")
    same((at / "a" / "x" / "..").stat().st_ino, (at / "a").stat().st_ino, "the new parent")


@check
def append_by_processes(at):
    def child(letter):
        fd = os.open(at / "f", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for _ in range(2000):
            os.write(fd, letter * 37)
    pids = []
    for letter in (b"a", b"b", b"c"):
        pid = os.fork()
        if pid == 0:
            try:
                child(letter)
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        same(os.waitpid(pid, 0)[1], 0, "a child")
    data = (at / "f").read_bytes()
    records = {data[i:i + 37] for i in range(0, len(data), 37)}
    same(len(data), 3 * 2000 * 37, "bytes")
    same(records, {b"a" * 37, b"b" * 37, b"c" * 37}, "records")


@check
def holes(at):
    fd = new(at / "f")
    os.pwrite(fd, b"x" * 65536, 1 << 20)
    os.ftruncate(fd, 4 << 20)
    same(os.pread(fd, 1 << 20, 0), bytes(1 << 20), "a hole")
    same(os.lseek(fd, 0, os.SEEK_END), 4 << 20, "the end")
    data = os.lseek(fd, 0, os.SEEK_DATA)
    if data == 0:
        raise Skip("no SEEK_HOLE: all is data")
    same(data, 1 << 20, "SEEK_DATA")
    same(os.lseek(fd, 1 << 20, os.SEEK_HOLE), (1 << 20) + 65536, "SEEK_HOLE")
    fails(errno.ENXIO, "SEEK_DATA behind the last", lambda: os.lseek(fd, 2 << 20, os.SEEK_DATA))
    same(os.fstat(fd).st_blocks * 512 < 1 << 20, True, "room taken")


@check
def preallocation(at):
    fd = new(at / "f", 10)
    fallocate(fd, KEEP_SIZE, 0, 1 << 20)
    same(os.fstat(fd).st_size, 10, "the size, kept")
    same(os.fstat(fd).st_blocks * 512 >= 1 << 20, True, "room taken")
    fallocate(fd, 0, 0, 2 << 20)
    same(os.fstat(fd).st_size, 2 << 20, "the size")
    same(os.pread(fd, 2 << 20, 0), pattern(10) + bytes((2 << 20) - 10), "contents")


@check
def copy_file_range(at):
    source, target = new(at / "s", 300_000), new(at / "t", 1000)
    try:
        copied = os.copy_file_range(source, target, 200_001, 33, 500)
    except OSError as e:
        raise Skip(f"no copy_file_range: {e.strerror}") from e
    same(os.pread(target, 300_000, 0), pattern(1000)[:500] + pattern(300_000)[33:33 + copied], "the copy")
    os.pwrite(source, b"changed", 100)
    same(os.pread(target, 7, 567), pattern(300_000)[100:107], "the copy after the source has changed")


@check
def far_offsets(at):
    fd = new(at / "f")
    for shift in (31, 32, 33, 40, 43):
        at_offset = (1 << shift) - 3
        try:
            os.pwrite(fd, b"across", at_offset)
        except OSError as e:
            same(e.errno, errno.EFBIG, f"a write at 2^{shift}")
            break
        same(os.pread(fd, 8, at_offset - 1), b"\0across", f"a write at 2^{shift}")
        same(os.fstat(fd).st_size, at_offset + 6, "the size")


@check
def many_entries(at):
    names = {f"{n:06}-{'x' * (n % 50)}" for n in range(10_000)}
    for name in names:
        os.close(os.open(at / name, os.O_CREAT | os.O_WRONLY, 0o644))
    same(len(os.listdir(at)), 10_000, "entries")
    same(set(os.listdir(at)), names, "names")
    # Each name that is there all the time is seen once, whatever happens to others meanwhile.
    rng, seen, others = random.Random(1), [], sorted(names)[5000:]
    with os.scandir(at) as entries:
        for number, entry in enumerate(entries):
            seen.append(entry.name)
            if number % 4 == 0 and others:
                os.unlink(at / others.pop(rng.randrange(len(others))))
                (at / f"late-{number}").touch()
    stay = sorted(names)[:5000]
    same(sorted(n for n in seen if n in set(stay)), stay, "what stayed")
    same(len(seen), len(set(seen)), "entries seen, without repetition")
    shutil.rmtree(at)
    at.mkdir()


@check
def remove_while_reading(at):
    for number in range(3000):
        (at / f"{number}").touch()
    with os.scandir(at) as entries:
        for entry in entries:
            os.unlink(entry.path)
    same(os.listdir(at), [], "entries")
    os.rmdir(at)
    at.mkdir()


@check
def names_of_any_bytes(at):
    names = [bytes([b]) * 3 for b in range(1, 256) if b != ord("/")] + [b"n" * 255]
    for name in names:
        (at / os.fsdecode(name)).write_bytes(name)
    same(sorted(os.listdir(os.fsencode(at))), sorted(names), "names")
    fails(errno.ENAMETOOLONG, "a name of 256 bytes", lambda: os.open(at / ("n" * 256), os.O_CREAT))


@check
def attributes(at):
    (at / "f").touch()
    try:
        os.setxattr(at / "f", "user.a", b"1")
    except OSError as e:
        raise (Skip("no attributes") if e.errno == errno.EOPNOTSUPP else e) from e
    fails(errno.EEXIST, "create what is there", lambda: os.setxattr(at / "f", "user.a", b"2", os.XATTR_CREATE))
    fails(errno.ENODATA, "replace what is not there", lambda: os.setxattr(at / "f", "user.b", b"2", os.XATTR_REPLACE))
    os.setxattr(at / "f", "user.a", b"x" * 1000, os.XATTR_REPLACE)
    os.setxattr(at / "f", "user.empty", b"")
    same(os.getxattr(at / "f", "user.a"), b"x" * 1000, "a value")
    same(os.getxattr(at / "f", "user.empty"), b"", "an empty value")
    same(sorted(n for n in os.listxattr(at / "f") if n.startswith("user.")), ["user.a", "user.empty"], "names")
    os.removexattr(at / "f", "user.a")
    fails(errno.ENODATA, "what was removed", lambda: os.getxattr(at / "f", "user.a"))


@check
def programs_run(at):
    shutil.copy(os.path.realpath("/bin/ls"), at / "ls")
    same(subprocess.run([at / "ls", at], capture_output=True, text=True).stdout, "ls\n", "its output")
    shutil.copy(os.path.realpath("/bin/sleep"), at / "sleep")
    with subprocess.Popen([at / "sleep", "30"]) as p:
        time.sleep(0.2)
        fd = os.open(at / "sleep", os.O_RDONLY)
        os.unlink(at / "sleep")
        same(p.poll(), None, "it runs on without its file's name")
        os.close(fd)
        p.kill()


@check
def set_user_id_ends_with_a_write(at):
    at.chmod(0o777)
    (at / "f").write_text("x")
    (at / "f").chmod(0o6777)

    def child():
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        with open(at / "f", "ab", buffering=0) as f:
            f.write(b"y")
    same(in_child(child), 0, "the child")
    same(oct((at / "f").stat().st_mode & 0o7777), oct(0o777), "the mode")


@check
def file_without_a_name(at):
    try:
        fd = os.open(at, os.O_TMPFILE | os.O_RDWR, 0o644)
    except OSError as e:
        raise (Skip("no O_TMPFILE") if e.errno in (errno.EOPNOTSUPP, errno.EISDIR) else e) from e
    os.write(fd, b"hidden")
    same(os.listdir(at), [], "names")
    same(libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, os.fsencode(at / "named"), AT_SYMLINK_FOLLOW), 0, "linkat")
    same((at / "named").read_bytes(), b"hidden", "contents")
    same(os.fstat(fd).st_nlink, 1, "links")


@check
def full(at):
    """Until nothing fits: errors are ENOSPC, what was written stays right, and room that is freed can be used."""
    if os.environ.get("SUITE_MAY_FILL") != "yes":
        raise Skip("the file system is somebody else's")
    free = os.statvfs(at).f_bavail * os.statvfs(at).f_frsize
    fd = new(at / "ballast")
    fallocate(fd, 0, 0, max(free - (48 << 20), 1 << 20))
    written, failures = {}, 0
    rng = random.Random(3)
    for number in range(20_000):
        data = rng.randbytes(rng.choice([100, 5000, 100_000]))
        name = at / f"{number}"
        try:
            name.write_bytes(data)
            written[name] = data
        except OSError as e:
            same(errno.errorcode[e.errno], "ENOSPC", "the error")
            failures += 1
            name.unlink(missing_ok=True)
            if failures > 30:
                break
    same(failures > 30, True, "it is full at last")
    for name, data in written.items():
        same(name.read_bytes(), data, f"the contents of {name.name}")
    os.unlink(at / "ballast")
    os.close(fd)
    (at / "again").write_bytes(bytes(1 << 20))
    for name in written:
        name.unlink()
