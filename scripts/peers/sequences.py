"""Block sequences, as frit and as libCacheSim read them."""

import csv
import pathlib
import subprocess

import libcachesim
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "traces"
BLOCK_SECTORS = 8

# libCacheSim's name of each policy that both have, made with the parameters of docs/reference/cache-policies.md.
POLICIES = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "clock": libcachesim.Clock,
    "arc": libcachesim.ARC,
    "2q": libcachesim.TwoQ,
    "s3-fifo": libcachesim.S3FIFO,
    "sieve": libcachesim.Sieve,
}

# libCacheSim's binary format: time, object, size, ordinal of the next access to it (-1: none or not known).
ORACLE_GENERAL = numpy.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])


def blocks_of(frit, workload, limit, directory):
    """The blocks of a workload's first requests: converted by frit to its own text, and cut into blocks here."""
    text = directory / "recorded.csv"
    subprocess.run([frit, "trace", "convert", "--force", "--devices", "concat", "--limit", limit, workload, text], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first, count = [], []
    with open(text, newline="") as file:
        for row in csv.DictReader(file):
            if row["op"] in "RW":
                begin, end = int(row["sector"]), int(row["sector"]) + int(row["sectors"])
                first.append(begin // BLOCK_SECTORS)
                count.append(-(-end // BLOCK_SECTORS) - begin // BLOCK_SECTORS)
    text.unlink()
    first, count = numpy.array(first, "i8"), numpy.array(count, "i8")
    # 0, 1, 2, … within each request: positions less that of the request's first block.
    begins = numpy.repeat(numpy.cumsum(count) - count, count)
    return numpy.repeat(first, count) + (numpy.arange(count.sum()) - begins)


def write(blocks, path):
    """Writes blocks in libCacheSim's format: objects of size 1."""
    rows = numpy.zeros(len(blocks), ORACLE_GENERAL)
    rows["object"], rows["size"], rows["next"] = blocks, 1, -1
    rows.tofile(path)


def reader(path):
    """libCacheSim's reader of such a file."""
    return libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
