#!/usr/bin/env python3
"""SQLite on a file system: databases.py DIRECTORY JOURNAL TRANSACTIONS.

Two processes write the same database with locks between them, a third reads; then integrity_check and every row.
"""

import os
import pathlib
import sqlite3
import subprocess
import sys
import zlib


def payload(writer, number):
    """What a row holds: it can be computed again."""
    return (f"{writer}-{number}-" * (1 + number % 300)).encode()


def connect(path, mode):
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    found = db.execute(f"pragma journal_mode = {mode}").fetchone()[0]
    if found != mode:
        sys.exit(f"the journal is {found}, not {mode}")
    db.execute("pragma synchronous = full")
    return db


def write(path, mode, writer, count):
    """Transactions of a few rows each, every tenth rolled back."""
    db = connect(path, mode)
    for number in range(count):
        db.execute("begin immediate")
        data = payload(writer, number)
        db.execute("insert into rows values (?, ?, ?, ?)", (writer, number, data, zlib.crc32(data)))
        db.execute("update counters set number = number + 1 where writer = ?", (writer,))
        db.execute("rollback" if number % 10 == 9 else "commit")
    db.close()


def read(path, mode, writers):
    """Counts agree with rows in every state that a reader sees."""
    db = connect(path, mode)
    states = 0
    while any(w.poll() is None for w in writers):
        rows, counted = db.execute("select (select count(*) from rows), (select sum(number) from counters)").fetchone()
        if rows != counted:
            sys.exit(f"a reader sees half a transaction: {rows} rows, {counted} counted")
        states += 1
    db.close()
    return states


def main():
    if sys.argv[1] == "write":
        return write(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    mode, count = sys.argv[2], int(sys.argv[3])
    path = pathlib.Path(sys.argv[1]) / f"{mode}.db"
    db = connect(path, mode)
    db.execute("create table rows (writer int, number int, data blob, crc int, primary key (writer, number))")
    db.execute("create table counters (writer int primary key, number int)")
    db.executemany("insert into counters values (?, 0)", [(1,), (2,)])
    writers = [subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "write", path, mode, str(w), str(count)])
               for w in (1, 2)]
    states = read(path, mode, writers)
    codes = [w.wait() for w in writers]
    if any(codes):
        sys.exit(f"a writer failed: {codes}")
    sound = db.execute("pragma integrity_check").fetchall()
    if sound != [("ok",)]:
        sys.exit(f"integrity_check: {sound[:3]}")
    for writer in (1, 2):
        expected = [n for n in range(count) if n % 10 != 9]
        found = db.execute("select number, data, crc from rows where writer = ? order by number", (writer,)).fetchall()
        if [f[0] for f in found] != expected:
            sys.exit(f"writer {writer}: {len(found)} rows, not {len(expected)}")
        for number, data, crc in found:
            if data != payload(writer, number) or zlib.crc32(data) != crc:
                sys.exit(f"writer {writer}: row {number} holds something else")
    db.execute("vacuum")
    db.close()
    print(f"{2 * count} transactions, {states} states read")


if __name__ == "__main__":
    main()
