"""Reads traces for the models beside this file: texts, and frit's recorded CSV."""

import collections
import shutil
import subprocess
import sys

Request = collections.namedtuple("Request", "op sector sectors metadata")
ByteRequest = collections.namedtuple("ByteRequest", "op first end metadata")


def text_of(path):
    """Returns the text of a file, decompressed if its name says so."""
    if not path.endswith(".zst"):
        with open(path) as file:
            return file.read()
    if shutil.which("zstd"):
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True, text=True).stdout
    try:
        import zstandard
    except ImportError:
        sys.exit(f"{path}: install the program zstd, or the Python module zstandard")
    with open(path, "rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read().decode()


def requests_of(path, limit=None):
    """Returns the first reads, writes and discards of a trace in file order. Flushes are left out, but count."""
    found, count = [], 0
    for line in text_of(path).splitlines()[1:]:
        _, op, sector, sectors, flags = line.split(",")[:5]
        # A write with a preflush is preceded by a flush.
        count += 2 if "P" in flags and op != "F" else 1
        if limit is not None and count > limit:
            break
        if op in "RWD":
            found.append(Request(op, int(sector), int(sectors), "M" in flags))
    return found


def byte_requests_of(path, limit=None):
    """Returns the first reads and writes of a trace, with their ranges in bytes. Lines with the flag B state bytes."""
    found = []
    for line in text_of(path).splitlines()[1:][:limit]:
        _, op, at, length, flags = line.split(",")[:5]
        unit = 1 if "B" in flags else 512
        if op in "RW":
            found.append(ByteRequest(op, int(at) * unit, (int(at) + int(length)) * unit, "M" in flags))
    return found
