#!/usr/bin/env python3
"""A tree of files of all kinds, and the list of what it holds: names, contents, owners, modes, times, attributes.

  tree.py write DIRECTORY LIST      makes the tree and its list
  tree.py compare DIRECTORY LIST    lists it again and compares
"""

import hashlib
import json
import os
import pathlib
import random
import socket
import stat
import sys

# Sizes around the units that file systems have: inline data, words, blocks, pages of pointers, huge pages.
SIZES = [0, 1, 7, 8, 9, 59, 60, 61, 255, 256, 4095, 4096, 4097, 65535, 65536, 65537, 2**20 - 1, 2**21, 2**21 + 4097]


def write(root):
    """Makes the tree; what is in it depends on its name only."""
    rng = random.Random(root.name)
    root.mkdir()
    for number, size in enumerate(SIZES * 3):
        path = root / f"sizes-{number % 5}" / f"{number}-{size}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(rng.randbytes(size))
        path.chmod(rng.choice([0o600, 0o644, 0o755, 0o4755, 0o2711, 0o000]))
        os.chown(path, rng.choice([0, 1, 65534]), rng.choice([0, 1, 65534]))
        os.utime(path, ns=(rng.randrange(2**60), rng.randrange(2**60)))
    many = root / "many"
    many.mkdir(mode=0o1777)
    for number in range(3000):
        (many / (f"{number:04}" + "n" * rng.randrange(200))).write_bytes(rng.randbytes(rng.randrange(300)))
    for name in rng.sample(sorted(os.listdir(many)), 1000):
        (many / name).unlink()
    deep = root
    for level in range(60):
        deep = deep / f"level-{level}"
        deep.mkdir()
        (deep / "file").write_text(str(level))
    odd(root / "odd", rng)
    sparse(root / "sparse", rng)
    # Written in pieces that overlap, cut and extended.
    with open(root / "rewritten", "wb", buffering=0) as f:
        for _ in range(500):
            f.seek(rng.randrange(3_000_000))
            f.write(rng.randbytes(rng.randrange(1, 20_000)))
            if rng.random() < 0.05:
                f.truncate(rng.randrange(3_000_000))


def odd(odd_dir, rng):
    """Names, links and kinds of files that are seldom."""
    odd_dir.mkdir()
    for name in ["ä ö ü", "日本語", "new\nline", "-option", "x" * 255, "\\back*?", ".hidden"]:
        (odd_dir / name).write_text(name)
    (odd_dir / "short-link").symlink_to("ä ö ü")
    (odd_dir / "long-link").symlink_to("/".join(["very-long-target"] * 200))
    for number in range(20):
        os.link(odd_dir / ".hidden", odd_dir / f"hard-{number}")
    os.mkfifo(odd_dir / "fifo", 0o640)
    os.mknod(odd_dir / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(odd_dir / "disk", 0o660 | stat.S_IFBLK, os.makedev(7, 200))
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(odd_dir / "socket"))
    except OSError:
        pass  # The path is too long for a socket's address.
    listener.close()
    attributed = odd_dir / "attributes"
    attributed.write_text("with attributes")
    for number in range(8):
        os.setxattr(attributed, f"user.number-{number}", rng.randbytes(rng.randrange(200)))
    os.setxattr(odd_dir, "trusted.of-directory", b"value")


def sparse(sparse_dir, rng):
    """Files with holes, and with room that was never written."""
    sparse_dir.mkdir()
    with open(sparse_dir / "holes", "wb") as f:
        for _ in range(40):
            f.seek(rng.randrange(200_000_000))
            f.write(rng.randbytes(5000))
    with open(sparse_dir / "preallocated", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, 5_000_000)
        f.seek(2_000_000)
        f.write(rng.randbytes(10_000))
    with open(sparse_dir / "extended", "wb") as f:
        f.truncate(50_000_001)


def entry(path):
    """All that is to be the same later. Sizes and links of directories are the file system's own matter."""
    s = path.lstat()
    found = {"mode": s.st_mode, "uid": s.st_uid, "gid": s.st_gid, "mtime": s.st_mtime_ns}
    if not stat.S_ISDIR(s.st_mode):
        found |= {"links": s.st_nlink, "size": s.st_size}
    if stat.S_ISLNK(s.st_mode):
        found["target"] = os.readlink(path)
    elif stat.S_ISREG(s.st_mode):
        with open(path, "rb") as f:
            found["sha256"] = hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
                hashlib.sha256(f.read()).hexdigest()
    elif not stat.S_ISDIR(s.st_mode):
        found["device"] = s.st_rdev
    # Labels of the machine's security modules are set by the kernel.
    names = [n for n in os.listxattr(path, follow_symlinks=False) if not n.startswith("security.")]
    if names:
        found["attributes"] = {n: os.getxattr(path, n, follow_symlinks=False).hex() for n in sorted(names)}
    return found


def listing(root):
    """What the tree holds, by name."""
    found = {".": entry(root)}
    for at, directories, files in os.walk(root):
        for name in directories + files:
            path = pathlib.Path(at) / name
            found[str(path.relative_to(root))] = entry(path)
    return found


def main():
    action, root, kept = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    os.umask(0)
    if action == "write":
        write(root)
        found = listing(root)
        kept.write_text(json.dumps(found))
        print(f"{len(found)} entries")
        return
    before, after = json.loads(kept.read_text()), listing(root)
    wrong = [n for n in sorted(before.keys() | after.keys()) if before.get(n) != after.get(n)]
    for name in wrong[:20]:
        print(f"{name!r}: was {before.get(name)}, is {after.get(name)}")
    if wrong:
        sys.exit(f"{len(wrong)} of {len(before)} entries differ, first {wrong[0]!r}")
    print(f"{len(after)} entries are the same")


if __name__ == "__main__":
    main()
