#!/usr/bin/env python3
"""Mixes programs with direct access, programs without, and the processing engine on the same files of a mount.

    direct_stress.py --frit target/release/frit --mount /mnt [--seed N] [--operations N] [--kill]

A coordinator sends operations to workers, each a process: some run under `frit exec`. It has the expected
bytes of each file. In the first part one operation runs at a time, on any worker, so that every result
is known. In the second part all workers run at once, each in blocks of its own. In the third part workers append to
logs, while others look at them. With --kill, workers are killed and stopped in the middle. The program ends with 1 at
the first wrong byte.
"""
import argparse
import hashlib
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time

FILES = 3
SIZE = 3 << 20
BLOCK = 4096


def pattern(tag, length):
    """Bytes that depend on the operation."""
    one = bytes((tag * 31 + i * 7 + (i >> 8) * 13 + 1) & 255 for i in range(min(length, 4096)))
    return (one * (length // max(len(one), 1) + 1))[:length]


# ---- worker


class Worker:
    def __init__(self, root):
        self.root, self.open = root, {}

    def fd(self, name, how):
        key = (name, how)
        if key not in self.open:
            flags = {"rw": os.O_RDWR, "r": os.O_RDONLY, "direct": os.O_RDWR | os.O_DIRECT, "append": os.O_RDWR | os.O_APPEND}
            self.open[key] = os.open(f"{self.root}/{name}", flags[how] | os.O_CREAT, 0o644)
        return self.open[key]

    def run(self, op):
        kind, name, at, length, tag = op["op"], op["file"], op["at"], op["len"], op["tag"]
        fd = None if kind in ("close", "isp") else self.fd(name, op.get("how", "rw"))
        if kind == "pwrite":
            data = pattern(tag, length)
            done = 0
            while done < length:
                done += os.pwrite(fd, data[done:], at + done)
        elif kind == "pwritev":
            data = pattern(tag, length)
            cut = length // 3
            if os.pwritev(fd, [data[:cut], data[cut:]], at) != length:
                return {"short": True}
        elif kind == "write":
            os.lseek(fd, at, os.SEEK_SET)
            if os.write(fd, pattern(tag, length)) != length:
                return {"short": True}
            return {"position": os.lseek(fd, 0, os.SEEK_CUR)}
        elif kind == "append":
            os.write(fd, pattern(tag, length))
        elif kind == "log":
            # Records at the end of the file, each acknowledged.
            at = os.lseek(fd, 0, os.SEEK_END)
            for number in range(op["records"]):
                record = pattern(tag + number, length)
                if number % 7 == 3:
                    cut = length // 3
                    written = os.writev(fd, [record[:cut], record[cut:]])
                elif number % 7 == 5:
                    written = os.pwrite(fd, record, at)
                    os.lseek(fd, at + length, os.SEEK_SET)
                else:
                    written = os.write(fd, record)
                at += length
                if written != length or os.lseek(fd, 0, os.SEEK_CUR) != at:
                    return {"short": number}
                if number % op["fsync"] == 1:
                    os.fsync(fd)
                if number % 9 == 2 and os.fstat(fd).st_size != at:
                    return {"size": os.fstat(fd).st_size, "not": at}
                if number % 11 == 4 and os.pread(fd, length + 1, at - length) != record:
                    return {"record": number}
                print(json.dumps({"ack": at}), flush=True)
        elif kind == "pread":
            return {"data": os.pread(fd, length, at).hex()}
        elif kind == "read":
            os.lseek(fd, at, os.SEEK_SET)
            first = os.read(fd, length // 2)
            second = os.read(fd, length - length // 2)
            return {"data": (first + second).hex(), "position": os.lseek(fd, 0, os.SEEK_CUR)}
        elif kind == "truncate":
            os.ftruncate(fd, at)
        elif kind == "punch":
            subprocess.run(["fallocate", "-p", "-o", str(at), "-l", str(length), f"{self.root}/{name}"], check=True)
        elif kind == "fallocate":
            os.posix_fallocate(fd, at, length)
        elif kind == "fsync":
            os.fsync(fd)
        elif kind == "size":
            return {"size": os.fstat(fd).st_size}
        elif kind == "mmap-read":
            with mmap.mmap(fd, at + length, mmap.MAP_SHARED, mmap.PROT_READ) as view:
                return {"data": view[at:at + length].hex()}
        elif kind == "mmap-write":
            with mmap.mmap(fd, at + length, mmap.MAP_SHARED) as view:
                view[at:at + length] = pattern(tag, length)
                view.flush()
        elif kind == "close":
            for key in [key for key in self.open if key[0] == name]:
                os.close(self.open.pop(key))
        elif kind == "dup":
            copy = os.dup(fd)
            os.lseek(fd, at, os.SEEK_SET)
            data = os.read(copy, length)
            position = os.lseek(fd, 0, os.SEEK_CUR)
            os.close(copy)
            return {"data": data.hex(), "position": position}
        elif kind == "fork":
            os.lseek(fd, at, os.SEEK_SET)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(write, os.read(fd, length))
                os._exit(0)
            os.close(write)
            data = b""
            while part := os.read(read, 1 << 16):
                data += part
            os.close(read)
            os.waitpid(child, 0)
            return {"data": data.hex(), "position": os.lseek(fd, 0, os.SEEK_CUR)}
        elif kind == "spawn":
            os.lseek(fd, at, os.SEEK_SET)
            os.set_inheritable(fd, True)
            out = subprocess.run(["head", "-c", str(length)], stdin=fd, capture_output=True, check=True).stdout
            return {"data": out.hex()}
        return {}


def worker(root):
    state = Worker(root)
    for line in sys.stdin:
        op = json.loads(line)
        try:
            answer = state.run(op)
        except OSError as error:
            answer = {"error": error.errno}
        print(json.dumps(answer), flush=True)


# ---- coordinator


class Process:
    def __init__(self, command, direct):
        self.command, self.direct = command, direct
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, op):
        self.process.stdin.write(json.dumps(op) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def call(self, op):
        self.send(op)
        answer = self.answer()
        if answer is None:
            sys.exit(f"a worker ended: {op}")
        return answer


def fail(seed, number, op, why):
    sys.exit(f"seed {seed}, operation {number}: {op}: {why}")


def differs(got, want):
    if len(got) != len(want):
        return f"{len(got)} bytes, not {len(want)}"
    at = next(i for i in range(len(want)) if got[i] != want[i])
    return f"byte {at} is {got[at]}, not {want[at]}"


KINDS = (["pwrite"] * 10 + ["pread"] * 12 + ["write"] * 4 + ["read"] * 5 + ["pwritev"] * 3 + ["append"] + ["truncate"] * 2
         + ["punch"] + ["fallocate", "fsync", "size", "size", "mmap-read", "mmap-write", "close", "dup", "fork", "spawn", "isp"])


def sequential(args, workers, rng):
    """One operation at a time, so that each result is known."""
    shadow = [bytearray() for _ in range(FILES)]
    # Long runs on one file let leases live; changes of worker end them.
    current, which = rng.choice(workers), 0
    for number in range(args.operations):
        if rng.random() < 0.04:
            current = rng.choice(workers)
        if rng.random() < 0.02:
            which = rng.randrange(FILES)
        bytes_ = shadow[which]
        kind = rng.choice(KINDS)
        length = rng.choice([1, 7, 100, 512, 1000, 4096, 5000, 65536, 300000])
        at = rng.randrange(SIZE)
        if rng.random() < 0.8 and len(bytes_) > length:
            # Within the file, where direct access is possible.
            at = rng.randrange(len(bytes_) - length)
        how = "direct" if kind in ("pwrite", "pread") and rng.random() < 0.05 else "append" if kind == "append" else "rw"
        op = {"op": kind, "file": f"f{which}", "at": at, "len": length, "tag": number, "how": how}
        if kind.startswith("mmap") and at + length > len(bytes_):
            continue
        if kind == "isp":
            check_engine(args, number, op, bytes_)
            continue
        answer = current.call(op)
        if "error" in answer or answer.get("short"):
            fail(args.seed, number, op, answer)
        if kind in ("pwrite", "write", "pwritev", "mmap-write", "append"):
            at = len(bytes_) if kind == "append" else at
            if at > len(bytes_):
                bytes_.extend(bytes(at - len(bytes_)))
            bytes_[at:at + length] = pattern(number, length)
        elif kind == "truncate":
            del bytes_[at:]
            bytes_.extend(bytes(at - len(bytes_)))
        elif kind == "punch":
            end = min(at + length, len(bytes_))
            if at < end:
                bytes_[at:end] = bytes(end - at)
        elif kind == "fallocate":
            bytes_.extend(bytes(max(0, at + length - len(bytes_))))
        elif kind == "size" and answer["size"] != len(bytes_):
            fail(args.seed, number, op, f"size {answer['size']}, not {len(bytes_)}")
        if "data" in answer:
            want = bytes(bytes_[at:at + length])
            got = bytes.fromhex(answer["data"])
            if got != want:
                fail(args.seed, number, op, f"direct={current.direct} {differs(got, want)}")
            if "position" in answer and answer["position"] != at + len(want):
                fail(args.seed, number, op, f"position {answer['position']}, not {at + len(want)}")
        elif "position" in answer and answer["position"] != at + length:
            fail(args.seed, number, op, f"position {answer['position']}, not {at + length}")
    return shadow


def check_engine(args, number, op, want):
    """The engine's checksum is that of the expected bytes."""
    command = json.dumps({"checksum": "sha256", "file": op["file"]})
    out = subprocess.run([args.frit, "isp", "run", args.mount, command], capture_output=True, text=True)
    if out.returncode != 0:
        if not os.path.exists(f"{args.mount}/{op['file']}"):
            return
        fail(args.seed, number, op, out.stderr + out.stdout)
    digest = hashlib.sha256(want).hexdigest()
    if digest not in out.stdout:
        fail(args.seed, number, op, f"sha256 {digest} of {len(want)} bytes, engine: {out.stdout}")


def concurrent(args, workers, rng):
    """All workers at once in one file, each in its own blocks; one more operation at a time for each."""
    blocks = SIZE // BLOCK
    setup = workers[0].call({"op": "truncate", "file": "shared", "at": 0, "len": 0, "tag": 0})
    assert "error" not in setup
    workers[0].call({"op": "pwrite", "file": "shared", "at": 0, "len": blocks * BLOCK, "tag": 1})
    shadow = bytearray(pattern(1, blocks * BLOCK))
    pending = {}
    for number in range(args.operations):
        for index, each in enumerate(workers):
            if index in pending:
                op, want = pending.pop(index)
                answer = each.answer()
                if answer is None:
                    fail(args.seed, number, op, "the worker ended")
                if "error" in answer:
                    fail(args.seed, number, op, answer)
                if "data" in answer and bytes.fromhex(answer["data"]) != want:
                    fail(args.seed, number, op, f"direct={each.direct} {differs(bytes.fromhex(answer['data']), want)}")
            # Blocks of a worker: those whose number has its remainder.
            block = rng.randrange(blocks // len(workers)) * len(workers) + index
            offset = rng.randrange(BLOCK)
            length = rng.randrange(1, BLOCK - offset + 1)
            at = block * BLOCK + offset
            op = {"op": rng.choice(["pwrite", "pwrite", "pread", "pread", "read", "write", "fsync"]), "file": "shared", "at": at,
                  "len": length, "tag": number * 8 + index}
            if "write" in op["op"]:
                shadow[at:at + length] = pattern(op["tag"], length)
            each.send(op)
            pending[index] = (op, bytes(shadow[at:at + length]))
        if args.kill and rng.random() < 0.02:
            # A worker that is killed in a write leaves old or new bytes in its range.
            index = rng.randrange(len(workers))
            op, _ = pending.pop(index)
            victim = workers[index]
            if rng.random() < 0.3:
                victim.process.send_signal(signal.SIGSTOP)
                time.sleep(rng.random() / 50)
            victim.process.kill()
            victim.process.wait()
            victim.start()
            with open(f"{args.mount}/shared", "rb") as file:
                file.seek(op["at"])
                found = file.read(op["len"])
            shadow[op["at"]:op["at"] + op["len"]] = found
    for index, each in enumerate(workers):
        if index in pending:
            each.answer()
    return shadow


def logs(args, workers, rng):
    """Workers append to logs of their own; between and meanwhile others read, append, truncate and rename them."""
    names = [f"log{index}" for index in range(len(workers))]
    shadow = [bytearray() for _ in names]
    for index, each in enumerate(workers):
        assert "error" not in each.call({"op": "truncate", "file": names[index], "at": 0, "len": 0, "tag": 0})
    for number in range(args.operations // 20):
        index = rng.randrange(len(workers))
        each, bytes_, path = workers[index], shadow[index], f"{args.mount}/{names[index]}"
        length, records = rng.choice([(10, 400), (100, 300), (1000, 200), (4096, 100), (5000, 100), (70000, 20), (1 << 20, 4)])
        if len(bytes_) > 8 << 20:
            os.truncate(path, at := rng.randrange(10000))
            del bytes_[at:]
        op = {"op": "log", "file": names[index], "at": 0, "len": length, "tag": number * 1000, "records": records,
              "fsync": rng.choice([2, 13, 10000])}
        want = bytes_ + b"".join(pattern(op["tag"] + i, length) for i in range(records))
        each.send(op)
        last, acks = len(bytes_), 0
        victim_at = rng.randrange(records) if args.kill and rng.random() < 0.3 else None
        look_at = rng.randrange(records) if rng.random() < 0.4 else None
        while (answer := each.answer()) and "ack" in answer:
            last, acks = answer["ack"], acks + 1
            if acks == look_at:
                # What was acknowledged is there for others, and the rest comes later.
                size = os.stat(path).st_size
                with open(path, "rb") as file:
                    found = file.read()
                if size < last or len(found) < last or found != want[:len(found)]:
                    fail(args.seed, number, op, f"{len(found)} bytes in a file of {size}, {last} acknowledged")
            if acks == victim_at:
                if rng.random() < 0.3:
                    each.process.send_signal(signal.SIGSTOP)
                    os.stat(path)
                    if rng.random() < 0.5:
                        with open(path, "rb") as file:
                            file.read(1)
                each.process.kill()
                each.process.wait()
                while (answer := each.answer()) and "ack" in answer:
                    last = answer["ack"]
                each.start()
                answer = {}
                break
        if answer != {}:
            fail(args.seed, number, op, answer)
        with open(path, "rb") as file:
            found = file.read()
        if victim_at is None and len(found) != len(want) or not last <= len(found) <= len(want) or found != want[:len(found)]:
            fail(args.seed, number, op, f"{len(found)} bytes, {last} acknowledged, {len(want)} written")
        bytes_[:] = found
        step = rng.random()
        if step < 0.2:
            with open(path, "ab") as file:
                file.write(pattern(number, 777))
            bytes_.extend(pattern(number, 777))
        elif step < 0.3:
            os.rename(path, path + ".old")
            os.rename(path + ".old", path)
        elif step < 0.5:
            each.call({"op": "close", "file": names[index], "at": 0, "len": 0, "tag": 0})
    return dict(zip(names, shadow))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", metavar="ROOT")
    parser.add_argument("--frit")
    parser.add_argument("--mount")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=1500)
    parser.add_argument("--kill", action="store_true")
    args = parser.parse_args()
    if args.worker:
        return worker(args.worker)
    rng = random.Random(args.seed)
    for name in [f"f{i}" for i in range(FILES)] + ["shared", "log0", "log1", "log2"]:
        if os.path.exists(f"{args.mount}/{name}"):
            os.unlink(f"{args.mount}/{name}")
    plain = [sys.executable, __file__, "--worker", args.mount]
    direct = [args.frit, "exec", "--mount", args.mount, "--", *plain]
    workers = [Process(direct, True), Process(direct, True), Process(plain, False)]
    shadows = {f"f{i}": shadow for i, shadow in enumerate(sequential(args, workers, rng))}
    # Then without the plain worker for a while, so that leases last.
    shadows["shared"] = concurrent(args, workers[:2], rng)
    with open(f"{args.mount}/shared", "rb") as file:
        if (got := file.read()) != bytes(shadows["shared"]):
            fail(args.seed, "end", "shared", differs(got, bytes(shadows["shared"])))
    shadows["shared"] = concurrent(args, workers, rng)
    shadows.update(logs(args, workers, rng))
    for each in workers:
        each.process.stdin.close()
        each.process.wait()
    for name, shadow in shadows.items():
        # Few operations may leave a file out.
        if not shadow and not os.path.exists(f"{args.mount}/{name}"):
            continue
        with open(f"{args.mount}/{name}", "rb") as file:
            if (got := file.read()) != bytes(shadow):
                fail(args.seed, "end", name, differs(got, bytes(shadow)))
    print(f"seed {args.seed}: {args.operations} operations in each part, all bytes as expected")


if __name__ == "__main__":
    main()
