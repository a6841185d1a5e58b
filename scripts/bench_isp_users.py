#!/usr/bin/env python3
"""Memory and start latency of in-storage processing beside many users with many instructions.

Ten users give 64 instructions each, in a channel each: filters with huge results, programs that loop, scans of a
large file, aggregates with a group for each line, and expressions that take long to compile. None of their results
is read. With --attack endless, all are programs that loop; with --attack writers, a process for each instruction gives
short ones without an end. Meanwhile another user looks for a name that is not there, and gives short instructions one
at a time: a query for words, a filter, a program. The table has the memory of the server beside the budget, and the times of the other user, alone and beside the ten.
Needs root, which mounts and starts the processes of the users.

Example:
  scripts/bench_isp_users.py
  scripts/bench_isp_users.py --frit target/release/frit --seconds 30 --budget 512M
  scripts/bench_isp_users.py --attack endless --users 80 --instructions 4
  scripts/bench_isp_users.py --attack writers --users 1 --instructions 300
"""

import argparse
import collections
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Begins instructions of an open command file (docs/reference/isp.md).
BEGIN = 0x40044675
FIRST_USER = 61_000
# None of those who give many: an instruction may wait for those of the same user.
OTHER_USER = FIRST_USER - 1
LINE = b"line %07d some text that is a line of one hundred bytes or so, repeated and repeated, again and again"


def module(loops):
    """Returns a module in hexadecimal digits, whose function scan loops or returns."""

    def section(number, content):
        return bytes([number, len(content)]) + content

    types = bytes([2, 0x60, 1, 0x7F, 1, 0x7F, 0x60, 3, 0x7F, 0x7F, 0x7E, 1, 0x7F])
    exports = b"\x03\x06memory\x02\x00\x06buffer\x00\x00\x04scan\x00\x01"
    buffer = bytes([0, 0x41, 0x00, 0x0B])
    scan = bytes([0, 0x03, 0x40, 0x0C, 0x00, 0x0B, 0x41, 0x00, 0x0B] if loops else [0, 0x41, 0x00, 0x0B])
    code = bytes([2, len(buffer)]) + buffer + bytes([len(scan)]) + scan
    sections = [(1, types), (3, bytes([2, 0, 1])), (5, bytes([1, 0, 17])), (7, exports), (10, code)]
    return (b"\0asm\1\0\0\0" + b"".join(section(*each) for each in sections)).hex()


GIB = 1 << 30
MANY = [
    {"filter": {"regex": "line"}, "file": "big", "memory": GIB},
    {"program": {"hex": module(True)}, "file": "big", "time_ms": 600_000},
    {"words": ["again", "zzz"], "positions": 10**9, "file": "big", "memory": GIB},
    {"aggregate": [{"sum": "3"}], "by": ["2"], "format": "csv", "header": False, "delimiter": " ", "file": "big",
     "memory": GIB},
    {"filter": {"regex": "(\\w{100}){4}x"}, "file": "big", "memory": GIB},
    {"regex": "[a-z]", "positions": 10**9, "file": "big", "memory": GIB},
]
SHORT = {
    "words": {"words": ["again"], "file": "small"},
    "filter": {"filter": {"regex": "line 000000[0-9]"}, "file": "small"},
    "program": {"program": {"hex": module(False)}, "file": "small"},
}


def as_user(user, function):
    """Runs a function in a process of a user. Returns its process ID."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        function()
    except BaseException as error:  # noqa: BLE001 - the process must not return into the caller
        print(f"user {user}: {error!r}", file=sys.stderr, flush=True)
    os._exit(0)


def end(processes):
    """Ends processes of users with their children."""
    for process in processes:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)


def open_channel(place):
    """Opens a command file in which instructions can be given."""
    channel = os.open(place / ".isp", os.O_RDWR)
    fcntl.ioctl(channel, BEGIN, bytes(4))
    return channel


def give(channel, instruction):
    os.write(channel, json.dumps(instruction).encode() + b"\n")


def write_without_end(place):
    """Gives as many short instructions as a channel takes, again and again."""
    line = json.dumps(SHORT["filter"]).encode() + b"\n"
    while True:
        try:
            channel = open_channel(place)
            os.write(channel, line * 16)
            os.close(channel)
        except OSError:
            time.sleep(0.01)


def give_many(place, number, user, attack):
    """Gives instructions, and waits for the end."""
    if attack == "writers":
        for _ in range(number - 1):
            if os.fork() == 0:
                break
        write_without_end(place)
    kinds = MANY[1:2] if attack == "endless" else MANY
    channels, refused = [], collections.Counter()
    for at in range(number):
        try:
            channels.append(open_channel(place))
            give(channels[-1], kinds[(at + user) % len(kinds)])
        except OSError as error:
            refused[error.strerror] += 1
    if refused:
        print(f"user {user}: {dict(refused)}", flush=True)
    signal.pause()


def measure(place, rounds, out):
    """Gives short instructions, and writes their times in seconds."""
    for at in range(rounds):
        began = time.monotonic()
        (place / f"none-{at}").exists()
        os.write(out, json.dumps(["lookup", "ok", time.monotonic() - began]).encode() + b"\n")
        for name, instruction in SHORT.items():
            began = time.monotonic()
            channel = open_channel(place)
            give(channel, instruction)
            status = json.loads(os.read(channel, 1 << 16).split(b"\n")[0])["status"]
            os.close(channel)
            os.write(out, json.dumps([name, status, time.monotonic() - began]).encode() + b"\n")


def server(image):
    """Returns the process ID of the server of an image."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"mount" in words and os.fsencode(image) in words:
            return int(entry.name)
    raise SystemExit(f"{image} has no server")


def anonymous_bytes(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) << 10


def timed(place, pid, seconds, rounds):
    """Measures the other user for some time. Returns times by instruction, statuses, most memory, and the time since
    the last end of an instruction, or 0 after the end of all."""
    times, statuses, most, end = collections.defaultdict(list), collections.Counter(), 0, time.monotonic() + seconds
    read, write = os.pipe()
    child = as_user(OTHER_USER, lambda: measure(place, rounds, write))
    os.close(write)
    os.set_blocking(read, False)
    rest, last, ended = b"", time.monotonic(), False
    while time.monotonic() < end and not ended:
        most = max(most, anonymous_bytes(pid))
        try:
            piece = os.read(read, 1 << 16)
        except BlockingIOError:
            time.sleep(0.05)
            continue
        *lines, rest = (rest + piece).split(b"\n")
        for name, status, took in map(json.loads, lines):
            times[name].append(took)
            statuses[status] += 1
        last, ended = time.monotonic(), not piece
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    return times, statuses, most, 0 if ended else time.monotonic() - last


def report(title, times, statuses, most, waits, idle):
    print(f"{title}: at most {(most - idle) >> 20} MiB more memory than before, statuses {dict(statuses)}")
    for name, taken in times.items():
        taken.sort()
        middle, last = taken[len(taken) // 2], taken[-1]
        print(f"  {name:8} {len(taken):5} instructions   median {middle * 1e3:8.1f} ms   longest {last * 1e3:8.1f} ms")
    if waits > 1:
        print(f"  one has not ended for {waits:.1f} s")


def write_files(place, mib):
    place.chmod(0o777)
    with (place / "big").open("wb") as file:
        for at in range(mib):
            start = at * 10_000
            file.write(b"".join(LINE % number + b"\n" for number in range(start, start + 10_000)))
    (place / "small").write_bytes(b"".join(LINE % number + b"\n" for number in range(2000)))
    for name in ("big", "small"):
        (place / name).chmod(0o644)


def run(frit, place, image, arguments):
    flags = ["--isp", "all", "--isp-memory", arguments.budget]
    subprocess.run([frit, "mkfs", image, "--size", "1G", "--force"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([frit, "mount", image, place, *flags], check=True, stdout=subprocess.DEVNULL)
    users = []
    try:
        pid = server(image)
        write_files(place, arguments.file)
        print(f"budget {arguments.budget}, server without instructions {anonymous_bytes(pid) >> 20} MiB")
        idle = anonymous_bytes(pid)
        report("alone", *timed(place, pid, 3, 20), idle)
        for user in range(arguments.users):
            uid = FIRST_USER + user
            many = (place, arguments.instructions, user, arguments.attack)
            users.append(as_user(uid, lambda many=many: give_many(*many)))
        report(f"beside {arguments.users} users", *timed(place, pid, arguments.seconds, 10**6), idle)
        threads = len(os.listdir(f"/proc/{pid}/task"))
        print(f"threads of the server {threads}")
        end(users)
        users = []
        time.sleep(2)
        print(f"afterwards {(anonymous_bytes(pid) - idle) >> 20} MiB more than before")
    finally:
        end(users)
        subprocess.run([frit, "unmount", place], check=False)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frit", default=str(ROOT / "target/release/frit"), help="program to measure")
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--instructions", type=int, default=64, help="instructions of each user")
    parser.add_argument("--attack", choices=["many", "endless", "writers"], default="many", help="what the users do")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--budget", default="1G", help="budget of the mount")
    parser.add_argument("--file", type=int, default=300, help="size of the large file in MB")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("it mounts for other users, and so needs root")
    with tempfile.TemporaryDirectory(prefix="frit-isp-users-", dir="/dev/shm") as directory:
        base = pathlib.Path(directory)
        base.chmod(0o755)
        place = base / "mount"
        place.mkdir()
        run(arguments.frit, place, base / "image", arguments)


if __name__ == "__main__":
    main()
