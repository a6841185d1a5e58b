#!/usr/bin/env python3
"""Kill the daemon of a mounted file system at random; nothing that was acknowledged may be lost.

One round: mount, check every record that any round saw acknowledged and read all other files, put load on the mount
(six clients that write records of different kinds, wait until they are durable and acknowledge them through a pipe, and
workers that do all else beside them), and send SIGKILL to the daemon at a random moment. Then unmount, and ask
frit fsck, which must find nothing. In some rounds the next mount, with its recovery, is killed as well. What was
acknowledged is kept in this process, outside of the mount.

--sync none: a call that has returned counts as durable, without fsync. --self-test needs no frit: it checks on a plain
directory that clients stopped at random are no violation, and that each way to lose a record is found.

All waits are bounded, and nothing stays mounted. Exit code 0: no violation.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from bounded import Violation, run, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fs"))
from noise import Noise  # noqa: E402
from records import KINDS  # noqa: E402

HERE = os.path.abspath(__file__)
WORKERS = 3


class Mount:
    """An image, or a pool, and the daemon that serves it."""

    def __init__(self, options, root):
        name = "pool" if options.pool else "volume" if options.nameless else "image"
        self.frit, self.image, self.at = options.frit, root / name, root / "mnt"
        self.options, self.log = options.mount_option, root / "daemon.log"
        self.daemon, self.mounts = None, []
        self.at.mkdir()
        if options.nameless:
            run(self.frit, "create", self.image, "--stack", "nameless-files", "--size", options.size, seconds=120)
        how = ["--pool", self.image] if options.pool else [self.image]
        how += [] if options.pool or options.nameless else ["--size", options.size]
        run(self.frit, "mkfs", *how, seconds=120)

    def start(self):
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen([self.frit, "mount", self.image, self.at, "--foreground", *self.options],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def up(self):
        began = time.monotonic()
        self.start()

        def mounted():
            if self.daemon.poll() is not None:
                raise Violation(f"frit mount ended with {self.daemon.returncode}: {tail(self.log)}")
            return os.path.ismount(self.at)
        until("mounting", 120, mounted)
        self.mounts.append(time.monotonic() - began)

    def kill(self):
        self.daemon.send_signal(signal.SIGKILL)

    def gone(self):
        """After a kill: takes note of the daemon's end, and unmounts what it left."""
        self.daemon.wait(60)
        self.daemon = None

        def unmounted():
            if str(self.at) not in mount_points():
                return True
            run("fusermount3", "-u", self.at, check=False)
            return str(self.at) not in mount_points()
        until("unmounting after the kill", 60, unmounted)

    def kill_mounting(self, rng):
        """Starts a daemon and kills it while it recovers, or just after."""
        self.start()
        time.sleep(rng.uniform(0.0, 0.1))
        self.kill()
        self.gone()

    def down(self):
        """An orderly end: unmount, and the daemon ends by itself."""
        until("unmounting", 60, lambda: run("fusermount3", "-u", self.at, check=False).returncode == 0)
        try:
            self.daemon.wait(120)
        except subprocess.TimeoutExpired as e:
            raise Violation("the daemon runs on after the unmount") from e
        if self.daemon.returncode != 0:
            raise Violation(f"the daemon ended with {self.daemon.returncode}: {tail(self.log)}")
        self.daemon = None

    def fsck(self):
        run(self.frit, "fsck", self.image, seconds=300)

    def release(self):
        """Leaves nothing, whatever happened."""
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait(60)
        if str(self.at) in mount_points():
            subprocess.run(["umount", "-l", self.at], timeout=60, check=False)


def mount_points():
    """Where file systems are mounted; a stat of one whose daemon is dead would fail."""
    with open("/proc/self/mounts") as mounts:
        return {line.split()[1] for line in mounts}


def tail(path, lines=5):
    return " | ".join(path.read_text(errors="replace").splitlines()[-lines:])


class Load:
    """Clients that write records, and workers that make noise, in processes of their own."""

    def __init__(self, at, sync):
        self.at, self.sync = at, sync
        self.acknowledged = {kind.__name__: 0 for kind in KINDS}
        self.processes, self.rounds = [], 0

    def start(self):
        self.rounds += 1
        words = [[kind.__name__, str(self.acknowledged[kind.__name__])] for kind in KINDS]
        words += [["noise", str(worker), str(self.rounds)] for worker in range(WORKERS)]
        self.processes = [
            subprocess.Popen([sys.executable, "-B", HERE, "--client", self.at, self.sync, *w], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
            for w in words]
        threads = [threading.Thread(target=self.listen, args=(kind.__name__, p.stdout), daemon=True)
                   for kind, p in zip(KINDS, self.processes)]
        for t in threads:
            t.start()
        return threads

    def listen(self, kind, lines):
        for line in lines:
            self.acknowledged[kind] = int(line)

    def ended(self):
        """A client that ended although its file system is there."""
        for p in self.processes:
            if p.poll() is not None:
                raise Violation(f"client {p.args[-2:]} ended with {p.returncode}: {p.stderr.read().strip()[-500:]}")

    def stop(self, threads):
        for p in self.processes:
            p.kill()
        for p in self.processes:
            try:
                p.wait(60)
            except subprocess.TimeoutExpired as e:
                raise Violation(f"client {p.args[-2:]} hangs after the kill") from e
            p.stderr.close()
        # All acknowledgements that were written before the kill are in the pipes.
        for t in threads:
            t.join(60)
        for p in self.processes:
            p.stdout.close()
        self.processes = []

    def verify(self):
        try:
            for kind in KINDS:
                kind(self.at).verify(self.acknowledged[kind.__name__])
            for worker in range(WORKERS):
                Noise(self.at, worker).verify()
        except (OSError, ValueError) as e:
            raise Violation(f"what was acknowledged cannot be read: {e}") from e


def client(at, sync, name, number, seed=None):
    """What a process of the load does, until it is killed or its file system is gone."""
    at = pathlib.Path(at)
    if name == "noise":
        Noise(at, int(number)).work(int(seed))
    kind = {k.__name__: k for k in KINDS}[name](at, sync == "fsync")
    number = int(number)
    while True:
        number += 1
        kind.step(number)
        print(number, flush=True)


def loop(options, root):
    """All rounds; returns what was violated."""
    rng, began = random.Random(options.seed), time.monotonic()
    mount = Mount(options, root)
    load = Load(mount.at, options.sync)
    kills = mount_kills = 0
    failed = None
    try:
        mount.up()
        while kills < options.kills and time.monotonic() - began < options.seconds:
            threads = load.start()
            time.sleep(rng.uniform(0.1, options.load))
            load.ended()
            mount.kill()
            kills += 1
            load.stop(threads)
            mount.gone()
            mount.fsck()
            while rng.random() < 0.25:
                mount.kill_mounting(rng)
                mount_kills += 1
                mount.fsck()
            mount.up()
            load.verify()
            if kills % 10 == 0:
                report(options, load, mount, kills, mount_kills, began)
        mount.down()
        mount.fsck()
        mount.up()
        load.verify()
        mount.down()
        mount.fsck()
    except (Violation, OSError) as e:
        failed = e
    finally:
        for p in load.processes:
            p.kill()
        mount.release()
    report(options, load, mount, kills, mount_kills, began)
    return failed and f"VIOLATION in round {kills}, seed {options.seed}: {type(failed).__name__}: {failed}"


def report(options, load, mount, kills, mount_kills, began):
    steps = ", ".join(f"{name} {number}" for name, number in load.acknowledged.items())
    print(f"{kills} kills of the daemon under load, {mount_kills} while it mounted; acknowledged ({options.sync}): "
          f"{sum(load.acknowledged.values())} ({steps}); longest mount {max(mount.mounts, default=0.0):.3f} s; "
          f"{time.monotonic() - began:.0f} s", flush=True)


def self_test(options, root):
    """Whether the checks find what they are for, and nothing else."""
    rng = random.Random(options.seed)
    at = root / "mnt"
    at.mkdir()
    load = Load(at, "none")
    for _ in range(8):
        threads = load.start()
        time.sleep(rng.uniform(0.3, 1.0))
        try:
            load.ended()
        finally:
            load.stop(threads)
        load.verify()
    # Enough steps that everything was replaced once.
    for kind in KINDS:
        doing = kind(at, sync=False)
        for _ in range(150):
            load.acknowledged[kind.__name__] += 1
            doing.step(load.acknowledged[kind.__name__])
    load.verify()
    missed, found = [], 0
    whole = root / "whole"
    shutil.copytree(at, whole, symlinks=True)
    kinds = [(kind, load.acknowledged[kind.__name__]) for kind in KINDS] + [(Noise, 0)]
    for kind, number in kinds:
        for index in range(len(list(kind(at, 0).plant(number)))):
            shutil.rmtree(at)
            shutil.copytree(whole, at, symlinks=True)
            what, lose = list(kind(at, 0).plant(number))[index]
            load.verify()
            lose()
            try:
                load.verify()
                missed.append(f"{kind.__name__}: {what}")
            except Violation:
                found += 1
    print(f"self-test: {sum(load.acknowledged.values())} steps of clients stopped 8 times are no violation; "
          f"{found} of {found + len(missed)} planted losses found")
    if missed:
        sys.exit(f"not found: {'; '.join(missed)}")


def has_mkfs(frit):
    return os.access(frit, os.X_OK) and run(frit, "mkfs", "--help", check=False).returncode == 0


def main():
    if sys.argv[1:2] == ["--client"]:
        return client(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="frit", choices=["frit"], help="the file system: others have no daemon")
    parser.add_argument("--frit", default="target/release/frit", help="the program (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=50, help="how often to kill the daemon (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1800, help="end after this time (default: %(default)s)")
    parser.add_argument("--load", type=float, default=1.5, help="longest load before a kill, s (default: %(default)s)")
    parser.add_argument("--size", default="512M", help="of the file system (default: %(default)s)")
    parser.add_argument("--sync", default="fsync", choices=["fsync", "none"], help="what makes a record durable")
    parser.add_argument("--pool", action="store_true", help="contents in a pool, which the kernel reads and writes itself")
    parser.add_argument("--nameless", action="store_true", help="a volume whose layer is a nameless-write device")
    parser.add_argument("--mount-option", action="append", default=[], help="one more word for frit mount, as often as needed")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    parser.add_argument("--dir", help="where to work (default: /dev/shm, else a temporary directory)")
    parser.add_argument("--self-test", action="store_true", help="check the checks")
    options = parser.parse_args()
    options.frit = os.path.abspath(options.frit)
    if not options.self_test and not has_mkfs(options.frit):
        sys.exit(f"fs-kill: no {options.frit} that has mkfs: make build")
    # Ended from outside as by an interrupt: nothing stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    base = options.dir or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    root = pathlib.Path(tempfile.mkdtemp(prefix="frit-fs-kill-", dir=base))
    violation = None
    try:
        violation = (self_test if options.self_test else loop)(options, root)
    finally:
        if not violation:
            shutil.rmtree(root, ignore_errors=True)
    if violation:
        sys.exit(f"{violation}\nkept: {root}")


if __name__ == "__main__":
    main()
