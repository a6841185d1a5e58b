#!/usr/bin/env python3
"""Runs all test programs of the workspace, two at a time, and shows the output of those that fail.

  scripts/run_tests.py [--jobs N] [--shuffle SEED] COMMAND...

COMMAND builds the programs, and names them as `cargo test --no-run --message-format=json` does:

  scripts/run_tests.py cargo test --workspace --locked

`cargo test` runs one program after another. Some of their tests use one processor or wait, so that two programs at a
time take less time than one by one. The working directory and the variables of a program are those that cargo gives
it. With --shuffle, tests and programs run in another order. Exits with 1 if a program fails; the others still run.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Programs that take longest, which begin first.
FIRST = ("cli", "torture", "serve", "reproduce", "isp", "fs", "calibrate", "volume")
# Programs, as package and target, that run beside no other, at the end: tools of file systems read all loop devices.
ALONE = {("cli", "attach")}


def programs(command):
    """Builds the test programs, and returns package directory, target and path of each."""
    build = [*command, "--no-run", "--message-format=json"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    found = []
    for message in map(json.loads, built.stdout.splitlines()):
        if message.get("executable") and message["profile"]["test"]:
            directory, target = Path(message["manifest_path"]).parent, message["target"]
            found.append((directory, target["name"], target["kind"][0], message["executable"]))
    if not found:
        sys.exit(f"run_tests: {' '.join(build)} names no test program")
    return found


def rank(program):
    name = program[0].name
    return FIRST.index(name) if name in FIRST else len(FIRST)


def environment():
    """The variables that cargo sets from its configuration, and those of this process."""
    configured = tomllib.loads((ROOT / ".cargo/config.toml").read_text())["env"]
    return {name: value for name, value in configured.items() if name not in os.environ} | os.environ


class Runs:
    """Programs that are left, and the result."""

    def __init__(self, left, options):
        self.left, self.options = left, options
        self.lock = threading.Lock()
        self.failed = []

    def take(self):
        with self.lock:
            return self.left.pop(0) if self.left else None

    def work(self):
        while program := self.take():
            directory, target, kind, path = program
            begin = time.monotonic()
            arguments, variables = [path], environment() | {"CARGO_MANIFEST_DIR": str(directory)}
            if self.options.shuffle is not None:
                # The option is of an unstable form, which a stable harness takes with this variable.
                variables["RUSTC_BOOTSTRAP"] = "1"
                arguments += ["-Zunstable-options", "--shuffle-seed", str(self.options.shuffle)]
            with tempfile.TemporaryFile() as output:
                run = subprocess.Popen(arguments, cwd=directory, env=variables, stdout=output, stderr=subprocess.STDOUT)
                # The usage is that of the program and of the programs that it started and waited for.
                _, status, used = os.wait4(run.pid, 0)
                run.returncode = os.waitstatus_to_exitcode(status)
                output.seek(0)
                said = output.read().decode(errors="replace").splitlines()
            wall, cpu = time.monotonic() - begin, used.ru_utime + used.ru_stime
            counts = next((line.removeprefix("test result: ") for line in reversed(said) if "test result:" in line), "")
            name = f"{directory.relative_to(ROOT)} {target if kind == 'test' else f'({kind})'}"
            with self.lock:
                if run.returncode == 0:
                    skipped = dict.fromkeys(f"  {line}" for line in said if line.startswith("skipped: "))
                    ran = counts.split(";")[0].removeprefix("ok. ")
                    print(f"{name:<34} {ran:>12} {wall:6.1f} s {cpu:6.1f} s of a processor", flush=True)
                    print(*skipped, sep="\n", end="\n" * bool(skipped), flush=True)
                else:
                    self.failed.append((name, counts or f"exit status {run.returncode}"))
                    print(*said, f"{name}: {self.failed[-1][1]}", sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="programs at a time (2)")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="another order of tests and programs")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    if not options.command or options.jobs < 1:
        parser.error("a command that builds test programs is needed, and at least one job")
    left = sorted(programs(options.command), key=rank)
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(left)
    alone = [program for program in left if (program[0].name, program[1]) in ALONE]
    runs = Runs([program for program in left if program not in alone], options)
    workers = [threading.Thread(target=runs.work) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    runs.left = alone
    runs.work()
    for name, why in runs.failed:
        print(f"failed: {name}: {why}", file=sys.stderr)
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
