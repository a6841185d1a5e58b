#!/usr/bin/env python3
"""Serve volumes of trees and of composers, kill their servers at random, and compare with what was acknowledged.

For each stack: fio writes a part of the volume over NBD and verifies it; the server is killed, started again, and fio
verifies once more. Then rounds: eight connections write, discard, write zeros, read and flush at random places, and
the server gets SIGKILL at a random moment, with requests under way. Some starts afterwards are killed as well, and some
rounds end by a clean shutdown. Each block of 4 KiB then has to be as the manual promises: the acknowledged version
where an acknowledgement is durable, else one that is not older than the last flush; a request without an answer leaves
old or new sectors, or blocks where they are atomic (scripts/shadow.py). At the end fio verifies its part again, and
frit check --data has to find nothing. At last ext4 is put on a new volume of the stack (scripts/stress-fs.sh).

Stacks with faults have errors that are expected. Three stacks (lost-flushes, lost-writes, corrupt-reads) do not keep
what is expected of them, and the run fails if that is not found.

All waits are bounded. Exit code 0: no violation, and as many kills as asked for.
"""

import argparse
import errno
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import nbd

from bounded import Violation, run, until
from live_stacks import STACKS, Stack
from shadow import BLOCK, SECTORS, Mismatch, Shadow

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
EXTENT_BLOCKS = 24  # 96 KiB: beside the chunks of 64 KiB, so that clients share chunks
CLIENTS = 8


class Server:
    """A volume and the process that serves it."""

    def __init__(self, frit, root, stack):
        self.frit, self.root, self.volume, self.socket = frit, root, root / "volume", root / "nbd"
        self.log, self.process, self.starts = root / "serve.log", None, []
        run(frit, "create", self.volume, "--stack", stack, seconds=120)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.frit, "serve", self.volume, "--nbd", f"unix:{self.socket}"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root)

    def up(self):
        """Starts it, and returns when it serves."""
        began = time.monotonic()
        self.start()

        def serves():
            if self.process.poll() is not None:
                raise Violation(f"frit serve ended with {self.process.returncode}: {self.last_words()}")
            try:
                return self.connect()
            except nbd.Error:
                return None
        handle = until("the start of frit serve", 120, serves)
        self.starts.append(time.monotonic() - began)
        return handle

    def connect(self):
        handle = nbd.NBD()
        handle.connect_unix(str(self.socket))
        return handle

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def close(self):
        self.process.terminate()
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired as e:
            raise Violation("frit serve does not end within 120 s") from e
        if code != 0:
            raise Violation(f"frit serve ended with {code}: {self.last_words()}")

    def kill_start(self, rng):
        """Kills a server while it starts: its recovery has to be repeated."""
        self.start()
        time.sleep(rng.uniform(0.0, 0.15))
        self.kill()

    def last_words(self):
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-3:])


class Client:
    """A connection that works in its own extents until its server is gone."""

    def __init__(self, campaign, number):
        self.campaign, self.rng = campaign, random.Random(f"{campaign.seed}-{number}-{campaign.rounds}")
        self.extents = campaign.extents[number::CLIENTS]
        self.handle, self.refused = campaign.server.connect(), False
        self.thread = threading.Thread(target=self.guarded, daemon=True)

    def guarded(self):
        try:
            while not self.campaign.ending and not self.refused:
                self.request()
        except Violation as e:
            self.campaign.violations.append(e)
        except nbd.Error as e:
            if not self.campaign.ending:
                words = self.campaign.server.last_words()
                self.campaign.violations.append(Violation(f"a request failed: {e}: {words}"))

    def request(self):
        rng = self.rng
        hot = max(1, len(self.extents) // 8)
        extent = rng.choice(self.extents[:hot] if rng.random() < 0.5 else self.extents)
        first, end = self.sectors(extent)
        kind = rng.random()
        if kind < 0.72:
            self.write(first, end, rng.random())
        elif kind < 0.97:
            self.read(first, end)
        else:
            self.flush()

    def sectors(self, extent):
        """A range in an extent: whole blocks, few or many, or some sectors."""
        rng, blocks = self.rng, EXTENT_BLOCKS
        if rng.random() < 0.7:
            count = rng.randint(1, 4) if rng.random() < 0.7 else rng.randint(1, blocks)
            at = rng.randint(0, blocks - count)
            return (extent + at) * SECTORS, (extent + at + count) * SECTORS
        count = rng.randint(1, 20)
        at = rng.randint(0, blocks * SECTORS - count)
        return extent * SECTORS + at, extent * SECTORS + at + count

    def write(self, first, end, kind):
        c, zeros = self.campaign, kind < 0.15
        durable = 0.15 <= kind < 0.2
        with c.lock:
            data = c.shadow.begin(first, end, zeros)
        flags = nbd.CMD_FLAG_FUA if durable else 0
        try:
            if kind < 0.08:
                self.handle.trim((end - first) * 512, first * 512)
            elif zeros:
                self.handle.zero((end - first) * 512, first * 512, nbd.CMD_FLAG_NO_HOLE if kind < 0.11 else 0)
            else:
                self.handle.pwrite(data, first * 512, flags)
        except nbd.Error as e:
            self.expected(e)
            with c.lock:
                c.shadow.failed(first, end)
            self.read(first, end)
            return
        with c.lock:
            c.shadow.acknowledged(first, end, durable)
            c.writes += 1

    def read(self, first, end):
        first, end = first // SECTORS, (end - 1) // SECTORS + 1
        try:
            data = self.handle.pread((end - first) * BLOCK, first * BLOCK)
        except nbd.Error as e:
            self.expected(e)
            return
        with self.campaign.lock:
            self.campaign.compare(first, data, crashed=False)

    def flush(self):
        c = self.campaign
        with c.lock:
            moment = c.shadow.moment
        try:
            self.handle.flush()
        except nbd.Error as e:
            self.expected(e)
            return
        with c.lock:
            c.shadow.flushed(moment)
            c.flushes += 1

    def expected(self, error):
        """An error in a reply of a stack with faults; all others end the client."""
        c = self.campaign
        if c.ending or error.errnum not in c.stack.errors or not self.handle.aio_is_ready():
            raise error
        c.errors += 1
        # After an error of its own, a volume refuses writes until it is opened again.
        self.refused |= error.errnum == errno.EPERM


class Campaign:
    """All that is done to one stack."""

    def __init__(self, options, stack, root):
        self.options, self.stack, self.root, self.seed = options, stack, root, options.seed
        self.rng = random.Random(f"{options.seed}-{stack.name}")
        self.shadow, self.lock = Shadow(stack.durable, stack.atomic, stack.zeros), threading.Lock()
        self.ending, self.violations = False, []
        self.rounds = self.kills = self.start_kills = self.closes = self.checks = 0
        self.writes = self.flushes = self.errors = self.verified = 0
        self.server = Server(options.frit, root, stack.stack)
        handle = self.server.up()
        self.place(handle.get_size())
        handle.shutdown()

    def place(self, size):
        """The extents of the clients are spread over the volume; the last 16 MiB are for fio."""
        if size < 64 * MIB:
            raise Violation(f"the volume has {size} bytes, and this takes at least 64 MiB")
        self.fio_at = (size - 16 * MIB) // MIB * MIB
        count = min(self.options.working_set, self.fio_at // 2) // (EXTENT_BLOCKS * BLOCK)
        stride = self.fio_at // BLOCK / count
        self.extents = [int(i * stride) for i in range(count)]
        self.rng.shuffle(self.extents)

    def compare(self, first, data, crashed):
        for i in range(len(data) // BLOCK):
            self.shadow.look(first + i, data[i * BLOCK:(i + 1) * BLOCK], crashed)
        self.verified += len(data) // BLOCK

    def fio(self, *words):
        done = run("fio", "--name=job", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={self.server.socket}",
                   "--rw=randwrite", "--bs=4k", f"--size={16 * MIB}", f"--offset={self.fio_at}", "--iodepth=16",
                   "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", f"--randseed={self.seed}",
                   "--minimal", *words, seconds=300, check=False, cwd=self.root)
        if done.returncode != 0 or "verify: bad" in done.stdout:
            raise Violation(f"fio {' '.join(words)} failed ({done.returncode}): {done.stdout[-500:]}")

    def fio_first(self):
        self.fio("--fsync=32", "--end_fsync=1", "--do_verify=1")
        self.server.kill()
        self.server.up().shutdown()
        self.fio("--verify_only")

    def round(self):
        self.rounds += 1
        self.ending = False
        clients = [Client(self, i) for i in range(CLIENTS)]
        for c in clients:
            c.thread.start()
        time.sleep(self.rng.uniform(0.02, self.options.load))
        # With faults a volume may refuse to be closed.
        close = self.stack.kind != "faults" and self.rng.random() < 0.08
        self.ending = True
        if not close:
            self.server.kill()
            self.kills += 1
        for c in clients:
            c.thread.join(60)
            if c.thread.is_alive():
                raise Violation("a request has no answer within 60 s")
        if self.violations:
            raise self.violations[0]
        self.reopen(close)
        self.verify()

    def reopen(self, close):
        if close:
            self.server.close()
            self.closes += 1
            self.shadow.closed()
        else:
            while self.rng.random() < 0.25:
                self.server.kill_start(self.rng)
                self.start_kills += 1
        if self.rounds % self.options.check_every == 0 and self.stack.kind != "faults":
            self.check()

    def check(self, *words):
        run(self.options.frit, "check", self.server.volume, *words, seconds=300)
        self.checks += 1

    def verify(self):
        """Reads all extents of a volume that was opened again."""
        handle = self.server.up()
        for extent in sorted(self.extents):
            for _ in range(20):
                try:
                    data = handle.pread(EXTENT_BLOCKS * BLOCK, extent * BLOCK)
                    break
                except nbd.Error as e:
                    if e.errnum not in self.stack.errors:
                        raise Violation(f"a read after the restart failed: {e}") from e
                    self.errors += 1
            else:
                raise Violation(f"20 reads of byte {extent * BLOCK} failed")
            self.compare(extent, data, crashed=True)
        handle.shutdown()

    def run(self, began):
        if self.stack.kind in ("tree", "composer"):
            self.fio_first()
        while self.kills < self.options.kills:
            if time.monotonic() - began > self.options.seconds:
                raise Violation(f"{self.kills} of {self.options.kills} kills within {self.options.seconds:.0f} s")
            self.round()
        if self.stack.kind in ("tree", "composer"):
            self.fio("--verify_only")
        elif self.stack.kind == "faults":
            self.heal()
        self.server.close()
        self.check("--data")

    def heal(self):
        """Ends the faults, so that everything can be read."""
        self.server.kill()
        run(self.options.frit, "ctl", self.server.volume, "set", "read_errors=0", "write_errors=0", "torn_writes=0",
            "flush_errors=0")
        self.stack.errors = ()
        self.verify()

    def report(self, began):
        starts = self.server.starts or [0.0]
        return (f"{self.kills} kills, {self.start_kills} of starts, {self.closes} shutdowns, {self.checks} checks; "
                f"{self.writes} writes, {self.flushes} flushes, {self.errors} errors, {self.verified} blocks compared; "
                f"starts median {statistics.median(starts):.2f} s, longest {max(starts):.2f} s; "
                f"{time.monotonic() - began:.0f} s")

    def end(self):
        self.ending = True
        if self.server.process and self.server.process.poll() is None:
            self.server.kill()


def killed(options, stack):
    """Kills the servers of a stack; returns the result, as text, and whether it is as it has to be."""
    began, campaign, violation = time.monotonic(), None, None
    root = pathlib.Path(tempfile.mkdtemp(prefix=f"frit-live-{stack.name}-", dir=options.dir))
    try:
        campaign = Campaign(options, stack, root)
        campaign.run(began)
    except Violation as e:
        violation = e
    finally:
        if campaign:
            campaign.end()
    text = campaign.report(began) if campaign else "no volume"
    good = isinstance(violation, Mismatch) if stack.kind == "broken" else violation is None
    if good:
        shutil.rmtree(root)
    if violation:
        text += f"\n  {'found, as it has to be' if good else 'VIOLATION'}: {violation}"
    elif not good:
        text += "\n  a broken promise was not found"
    if not good:
        text += f"\n  seed {options.seed}; kept in {root}"
    return text, good


def ext4(options, stack):
    """ext4 and stress-ng on a new volume of the stack."""
    began = time.monotonic()
    done = run(REPOSITORY / "scripts/stress-fs.sh", "--frit", options.frit, "--stack", stack.stack, "--size", "stack",
               "--seconds", "4", *(["--dir", options.dir] if options.dir else []), "ext4", seconds=1800, check=False)
    if done.returncode == 77:
        return f"ext4 left out: {done.stdout.strip()}", True
    steps = [line for line in done.stdout.splitlines() if line.startswith(("ext4 ", "kept"))]
    failed = [line for line in steps if " ok " not in line and "left out" not in line]
    result = "\n  ".join(["FAILED", *failed]) if done.returncode else f"passed, {len(steps)} steps"
    return f"ext4 {result}, {time.monotonic() - began:.0f} s", done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", help=f"of: {' '.join(s.name for s in STACKS)} (default: all)")
    parser.add_argument("--stack", help="instead: kills on this stack, a file or a builtin one")
    parser.add_argument("--durable", choices=["ack", "flush"], default="ack", help="with --stack: what is durable")
    parser.add_argument("--atomic", type=int, choices=[512, BLOCK], default=BLOCK,
                        help="with --stack: bytes of a write (default: %(default)s)")
    parser.add_argument("--frit", default="target/release/frit", help="the program (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=100, help="of each server; 0: only ext4 (default: %(default)s)")
    parser.add_argument("--no-ext4", action="store_true", help="only kills")
    parser.add_argument("--seconds", type=float, default=1200,
                        help="a stack that needs longer for its kills fails (default: %(default)s)")
    parser.add_argument("--load", type=float, default=1.0, help="longest load before a kill, s (default: %(default)s)")
    parser.add_argument("--working-set", type=lambda t: int(t) * MIB, default=24 * MIB,
                        help="of the clients, MiB (default: 24)")
    parser.add_argument("--seed", type=int, default=1, help="of the requests and the moments (default: %(default)s)")
    parser.add_argument("--check-every", type=int, default=10, help="rounds between two frit check")
    parser.add_argument("--dir", help="where to work (default: the temporary directory)")
    options = parser.parse_args()
    unknown = set(options.stacks) - {s.name for s in STACKS}
    if unknown:
        parser.error(f"no stack {' '.join(sorted(unknown))}")
    options.frit = os.path.abspath(options.frit)
    chosen, failed = [s for s in STACKS if not options.stacks or s.name in options.stacks], []
    if options.stack:
        chosen = [Stack("stack", options.stack, options.durable, options.atomic)]
    for stack in chosen:
        good = True
        if options.kills:
            text, good = killed(options, stack)
            print(f"{stack.name}: {text}", flush=True)
        if not options.no_ext4 and stack.kind in ("tree", "composer"):
            text, passed = ext4(options, stack)
            good = good and passed
            print(f"{stack.name}: {text}", flush=True)
        if not good:
            failed.append(stack.name)
    print(f"violations: {' '.join(failed)}" if failed else "no violations")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
