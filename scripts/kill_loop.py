#!/usr/bin/env python3
"""Kill a frit server at random under PostgreSQL and SQLite; nothing that was acknowledged may be lost.

One round: attach the volume, mount ext4, start PostgreSQL (its recovery included), check every transaction that any
round saw acknowledged, put load on both databases, and send SIGKILL to the frit server at a random moment. Then stop
the databases, unmount, `frit detach`, `frit attach` (the volume's recovery, which is itself killed in some rounds),
replay the journal of ext4, and ask e2fsck. What was acknowledged is kept in this process, outside of the volume.

All waits are bounded. At the end, or after a failure, everything is detached. Exit code 0: no violation.
"""

import argparse
import glob
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import psycopg2

from bounded import Violation, payload, run, until


def descendants(pid):
    """A process and all that it started."""
    children = {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(stat).read().rsplit(") ", 1)[1].split()
            children.setdefault(int(fields[1]), []).append(int(stat.split("/")[2]))
        except (OSError, IndexError):
            continue
    found, todo = [], [pid]
    while todo:
        at = todo.pop()
        found.append(at)
        todo.extend(children.get(at, []))
    return found


def sample(count, seen, rng, everything):
    """Which rows to read: all that are new, and some of the others; in the end all."""
    if everything:
        return list(range(1, count + 1))
    return sorted(set(range(max(1, seen - 5), count + 1)) | set(rng.choices(range(1, count + 1), k=min(300, count))))


class Volume:
    """A frit volume with ext4 on it."""

    def __init__(self, frit, root, size, stack):
        self.frit, self.dir, self.mount = frit, root / "volume", root / "mnt"
        self.mount.mkdir()
        self.recoveries = []
        self.device = None
        run(frit, "create", self.dir, "--stack", stack, *(["--size", size] if size != "stack" else []))

    def attach(self):
        log = self.dir / "serve.log"
        before = log.stat().st_size if log.exists() else 0
        self.device = run(self.frit, "attach", self.dir, seconds=180).stdout.strip()
        for line in log.read_bytes()[before:].decode().splitlines():
            if line.startswith("recovered in "):
                self.recoveries.append(float(line.split()[2]))
            if "cannot be given back" in line:
                raise Violation(f"recovery lost pages: {line}")

    def server(self):
        return json.loads((self.dir / "attached.json").read_text())["server"]

    def kill(self):
        os.kill(self.server(), signal.SIGKILL)

    def kill_recovery(self, rng):
        """Starts a server and kills it while it recovers."""
        server = subprocess.Popen([self.frit, "serve", self.dir, "--nbd", f"unix:{self.dir}/nbd.sock"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.0, 0.15))
        server.kill()
        server.wait(30)

    def detach(self, force=False, killed=False):
        """Detaches; after a kill that is told of, with exit code 1."""
        done = run(self.frit, "detach", self.dir, *(["--force"] if force else []), seconds=180, check=not killed)
        if killed and (done.returncode != 1 or "had ended without closing" not in done.stdout):
            raise Violation(f"detach after a kill ({done.returncode}) says: {done.stdout.strip()}")

    def replay(self):
        """Replays the journal of ext4, and checks the file system."""
        run("mount", self.device, self.mount)
        run("umount", self.mount)
        run("e2fsck", "-fn", self.device, seconds=180)
        run("mount", self.device, self.mount)

    def check(self):
        run(self.frit, "check", self.dir, seconds=300)

    def unmount(self):
        until("unmounting ext4", 60, lambda: run("umount", self.mount, check=False).returncode == 0)


class Postgres:
    """A PostgreSQL server whose data lies on the volume."""

    CLIENTS = 3

    def __init__(self, root, mount):
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.data, self.log = mount / "pg", root / "postgres.log"
        self.sockets = root / "sockets"
        self.sockets.mkdir()
        shutil.chown(self.sockets, "postgres")
        self.process = None
        self.acknowledged = [0] * self.CLIENTS
        self.uncertain = [0] * self.CLIENTS
        self.read = [0] * self.CLIENTS
        self.bench = None

    def initialise(self):
        self.data.mkdir()
        shutil.chown(self.data, "postgres")
        self.data.chmod(0o700)
        run("runuser", "-u", "postgres", "--", f"{self.bin}/initdb", "-D", self.data, "-A", "trust", "-E", "UTF8",
            "--no-locale", seconds=180, cwd="/")
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write("fsync = on\nsynchronous_commit = on\nfull_page_writes = on\nlisten_addresses = ''\n"
                       f"unix_socket_directories = '{self.sockets}'\nshared_buffers = 16MB\nmax_connections = 20\n"
                       "checkpoint_timeout = 30s\nmax_wal_size = 64MB\nmin_wal_size = 32MB\n"
                       "dynamic_shared_memory_type = mmap\n")
            # Nobody acknowledges what is not synced: ext4 shows zeros where an append had not reached the disk.
            conf.flush()
            os.fsync(conf.fileno())

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["runuser", "-u", "postgres", "--", f"{self.bin}/postgres", "-D", self.data],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True)

        def answers():
            if self.process.poll() is not None:
                raise Violation(f"PostgreSQL does not start; see {self.log}: {tail(self.log)}")
            return self.connect()
        until("PostgreSQL's start", 120, answers).close()

    def connect(self):
        try:
            return psycopg2.connect(host=str(self.sockets), user="postgres", dbname="postgres", connect_timeout=5)
        except psycopg2.OperationalError:
            return None

    def fill(self):
        with self.connect() as c, c.cursor() as q:
            q.execute("create table acks (client int, number int, payload text, primary key (client, number))")
            q.execute("create table counters (client int primary key, number int)")
            q.executemany("insert into counters values (%s, 0)", [(i,) for i in range(self.CLIENTS)])
        run(f"{self.bin}/pgbench", "-q", "-i", "-s", "2", "-h", self.sockets, "-U", "postgres", "postgres", seconds=180)

    def client(self, i):
        """Inserts a row and updates a counter in each transaction, until the server is gone."""
        try:
            c = self.connect()
            while True:
                number = self.acknowledged[i] + 1
                self.uncertain[i] = number
                with c, c.cursor() as q:
                    q.execute("insert into acks values (%s, %s, %s) on conflict (client, number) do nothing",
                              (i, number, payload(i, number)))
                    q.execute("update counters set number = %s where client = %s", (number, i))
                self.acknowledged[i] = number
        except (psycopg2.Error, AttributeError):
            return

    def load(self):
        self.bench = subprocess.Popen(
            [f"{self.bin}/pgbench", "-n", "-c", "2", "-T", "600", "-h", self.sockets, "-U", "postgres", "postgres"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        threads = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(self.CLIENTS)]
        for t in threads:
            t.start()
        return threads

    def stop(self):
        """Ends it at once: its disk is gone."""
        processes = [self.bench] if self.bench else []
        if self.process:
            processes.append(self.process)
        for process in processes:
            # runuser stays to the end, and takes note of the server's: a process that nobody takes note of
            # looks to the next server as if it were still running.
            under = descendants(process.pid)[1:] if process is self.process else [process.pid]
            for pid in under:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for process in processes:
            process.wait(60)
        self.process = self.bench = None

    def verify(self, rng, everything):
        with self.connect() as c, c.cursor() as q:
            for i, last in enumerate(self.acknowledged):
                q.execute("select number from acks where client = %s order by number", (i,))
                numbers = [r[0] for r in q.fetchall()]
                most = max(last, self.uncertain[i])
                if numbers != list(range(1, len(numbers) + 1)) or not last <= len(numbers) <= most:
                    raise Violation(f"PostgreSQL client {i}: {last} acknowledged, {most} tried, found {len(numbers)}, "
                                    f"last {numbers[-3:]}")
                q.execute("select number, payload from acks where client = %s and number = any(%s)",
                          (i, sample(len(numbers), self.read[i], rng, everything)))
                for number, text in q.fetchall():
                    if text != payload(i, number):
                        raise Violation(f"PostgreSQL client {i}: row {number} holds something else")
                self.read[i] = len(numbers)
                q.execute("select number from counters where client = %s", (i,))
                if q.fetchone()[0] != len(numbers):
                    raise Violation(f"PostgreSQL client {i}: half a transaction")
                # The transaction whose reply did not come was done: it counts from now on.
                self.acknowledged[i] = len(numbers)
            q.execute("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches),"
                      " (select sum(tbalance) from pgbench_tellers), (select coalesce(sum(delta), 0) from pgbench_history)")
            sums = q.fetchone()
            if len(set(sums)) != 1:
                raise Violation(f"pgbench: the sums of its tables differ: {sums}")


SQLITE_CLIENT = r"""
import sys
sys.path.insert(0, sys.argv[4])
import sqlite3, bounded
path, client, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
db = sqlite3.connect(path, isolation_level=None)
# With a rollback journal, full does not sync the directory after the journal is removed, which is the commit: the last
# one may be rolled back after a power cut. Extra does.
db.execute("pragma synchronous = extra")
while True:
    number += 1
    db.execute("begin immediate")
    db.execute("insert or ignore into acks values (?, ?)", (number, bounded.payload(client, number)))
    db.execute("update counter set number = ?", (number,))
    db.execute("commit")
    print(number, flush=True)
"""


class Sqlite:
    """Two SQLite databases on the volume, with both kinds of journal."""

    MODES = ["wal", "delete"]

    def __init__(self, mount):
        self.paths = [mount / f"sqlite-{m}.db" for m in self.MODES]
        self.acknowledged = [0] * len(self.paths)
        self.read = [0] * len(self.paths)
        self.clients = []

    def initialise(self):
        for mode, path in zip(self.MODES, self.paths):
            db = sqlite3.connect(path)
            db.execute(f"pragma journal_mode = {mode}")
            db.execute("pragma synchronous = extra")
            db.execute("create table acks (number integer primary key, payload text)")
            db.execute("create table counter (number int)")
            db.execute("insert into counter values (0)")
            db.commit()
            db.close()

    def load(self):
        here = os.path.dirname(os.path.abspath(__file__))
        self.clients = [
            subprocess.Popen([sys.executable, "-c", SQLITE_CLIENT, path, str(100 + i), str(self.acknowledged[i]), here],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for i, path in enumerate(self.paths)]

        def listen(i, lines):
            for line in lines:
                self.acknowledged[i] = int(line)
        threads = [threading.Thread(target=listen, args=(i, c.stdout), daemon=True) for i, c in enumerate(self.clients)]
        for t in threads:
            t.start()
        return threads

    def stop(self):
        for c in self.clients:
            c.kill()
        for c in self.clients:
            c.wait(60)
        self.clients = []

    def verify(self, rng, everything):
        for i, (mode, path) in enumerate(zip(self.MODES, self.paths)):
            db = sqlite3.connect(path)
            sound = db.execute("pragma integrity_check").fetchall()
            if sound != [("ok",)]:
                raise Violation(f"SQLite ({mode}): {sound[:3]}")
            numbers, last = [r[0] for r in db.execute("select number from acks order by number")], self.acknowledged[i]
            counter = db.execute("select number from counter").fetchone()[0]
            if numbers != list(range(1, len(numbers) + 1)) or not last <= len(numbers) <= last + 1:
                raise Violation(f"SQLite ({mode}): {last} acknowledged, found {len(numbers)}")
            if counter != len(numbers):
                raise Violation(f"SQLite ({mode}): half a transaction")
            for number in sample(len(numbers), self.read[i], rng, everything):
                if db.execute("select payload from acks where number = ?", (number,)).fetchone()[0] != payload(100 + i, number):
                    raise Violation(f"SQLite ({mode}): row {number} holds something else")
            db.close()
            self.acknowledged[i] = self.read[i] = len(numbers)


def tail(path, lines=5):
    return " | ".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])


class Loop:
    """All rounds."""

    def __init__(self, options, root):
        self.options, self.rng = options, random.Random(options.seed)
        self.volume = Volume(options.frit, root, options.size, options.stack)
        self.postgres, self.sqlite = Postgres(root, self.volume.mount), Sqlite(self.volume.mount)
        self.kills = self.recovery_kills = self.checks = 0

    def prepare(self):
        self.volume.attach()
        run("mkfs.ext4", "-q", "-F", self.volume.device, seconds=120)
        run("mount", self.volume.device, self.volume.mount)
        self.postgres.initialise()
        self.postgres.start()
        self.postgres.fill()
        self.sqlite.initialise()
        os.sync()

    def round(self):
        threads = self.postgres.load() + self.sqlite.load()
        time.sleep(self.rng.uniform(0.1, self.options.load))
        self.volume.kill()
        self.kills += 1
        # What was acknowledged before the kill is known once the clients have seen their errors.
        time.sleep(0.1)
        self.postgres.stop()
        self.sqlite.stop()
        for t in threads:
            t.join(60)
            if t.is_alive():
                raise Violation("a client hangs after the server was killed")
        self.volume.unmount()
        self.volume.detach(killed=True)
        while self.rng.random() < 0.25:
            self.volume.kill_recovery(self.rng)
            self.recovery_kills += 1
        if self.options.check_every and self.kills % self.options.check_every == 0:
            self.volume.check()
            self.checks += 1
        self.volume.attach()
        self.volume.replay()
        self.postgres.start()
        self.verify(everything=False)

    def verify(self, everything):
        self.postgres.verify(self.rng, everything)
        self.sqlite.verify(self.rng, everything)

    def end(self):
        """Leaves nothing mounted, whatever happened."""
        self.postgres.stop()
        self.sqlite.stop()
        try:
            self.volume.unmount()
        except Violation:
            pass
        self.volume.detach(force=True)


def report(loop, began):
    v = loop.volume
    times = v.recoveries or [0.0]
    acknowledged = {"PostgreSQL": sum(loop.postgres.acknowledged), "SQLite": sum(loop.sqlite.acknowledged)}
    print(f"kills of the server under load: {loop.kills}, during its recovery: {loop.recovery_kills}")
    print(f"acknowledged transactions, all found: PostgreSQL {acknowledged['PostgreSQL']}, "
          f"SQLite {acknowledged['SQLite']}")
    print(f"recoveries: {len(v.recoveries)}, median {statistics.median(times):.3f} s, longest {max(times):.3f} s")
    print(f"volume checks: {loop.checks}; whole run {time.monotonic() - began:.0f} s; seed {loop.options.seed}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frit", default="target/release/frit", help="the program (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=100, help="how often to kill the server (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3600,
                        help="a run that needs longer for its kills fails (default: %(default)s)")
    parser.add_argument("--load", type=float, default=1.5, help="longest load before a kill, s (default: %(default)s)")
    parser.add_argument("--size", default="1G", help="of the volume; stack: as its stack says (default: %(default)s)")
    parser.add_argument("--stack", default="hfsl-paper", help="of the volume (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    parser.add_argument("--check-every", type=int, default=10, help="rounds between two frit check; 0: never")
    parser.add_argument("--dir", help="where to work (default: a temporary directory)")
    options = parser.parse_args()
    options.frit = os.path.abspath(options.frit)
    began, failed = time.monotonic(), None
    root = pathlib.Path(tempfile.mkdtemp(prefix="frit-kill-", dir=options.dir))
    root.chmod(0o755)
    loop = Loop(options, root)
    try:
        loop.prepare()
        while loop.kills < options.kills and time.monotonic() - began < options.seconds:
            loop.round()
            if loop.kills % 10 == 0:
                report(loop, began)
        loop.verify(everything=True)
    except Violation as e:
        failed = e
    finally:
        loop.end()
    report(loop, began)
    if not failed and loop.kills < options.kills:
        print(f"{loop.kills} of {options.kills} kills within {options.seconds:.0f} s: too few")
        shutil.rmtree(root)
        sys.exit(1)
    if failed:
        print(f"VIOLATION in round {loop.kills}, seed {options.seed}: {failed}\nthe volume is kept in {root}")
        sys.exit(1)
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
