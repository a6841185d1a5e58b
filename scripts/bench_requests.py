#!/usr/bin/env python3
"""Times of small requests of a mount through /dev/fuse and through io_uring, in one run.

    bench_requests.py [--frit PROGRAM] [--rounds 7]

Medians of the rounds, in microseconds; both mounts take turns. Needs root, and Linux 6.14 for io_uring.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "fs"))
import small_requests  # noqa: E402

PARAMETER = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
WAYS = {"/dev/fuse": "off", "io_uring": "on"}
LARGE = 256 << 20


def large(root):
    """GB/s of writing and reading a file in order by 1 MiB."""
    path, piece = f"{root}/large", b"x" * (1 << 20)
    count = LARGE // len(piece)
    with open(path, "wb", buffering=0) as file:
        write = small_requests.each(count, lambda _: file.write(piece))
    # Bytes that the page cache does not have.
    subprocess.run(["sync", path], check=True)
    with open(path, "rb", buffering=0) as file:
        small_requests.os.posix_fadvise(file.fileno(), 0, 0, small_requests.os.POSIX_FADV_DONTNEED)
        read = small_requests.each(count, lambda _: file.read(len(piece)))
    small_requests.os.unlink(path)
    return {"write 1 MiB": write, "read 1 MiB": read}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frit", default="target/release/frit")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    try:
        before = PARAMETER.read_text()
        PARAMETER.write_text("Y")
    except OSError as error:
        print(f"skipped: requests through io_uring need root and Linux 6.14 ({error})")
        return
    times = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        mounted = []
        try:
            for way, word in WAYS.items():
                image, at = f"{place}/{word}.img", f"{place}/{word}"
                pathlib.Path(at).mkdir()
                subprocess.run([args.frit, "mkfs", image, "--size", "1G"], check=True, stdout=subprocess.DEVNULL)
                mount = [args.frit, "mount", image, at, f"--io-uring={word}"]
                subprocess.run(mount, check=True, stdout=subprocess.DEVNULL)
                mounted.append(at)
            for _ in range(args.rounds):
                for way, word in WAYS.items():
                    with tempfile.TemporaryDirectory(dir=f"{place}/{word}") as root:
                        for what, micros in (small_requests.measure(root) | large(root)).items():
                            times.setdefault(what, {}).setdefault(way, []).append(micros)
        finally:
            for at in mounted:
                subprocess.run([args.frit, "unmount", at], check=False, stdout=subprocess.DEVNULL)
            PARAMETER.write_text(before)
    print(f"{'µs (median of rounds)':24}" + "".join(f"{way:>12}" for way in WAYS) + f"{'ratio':>8}")
    for what, by_way in times.items():
        device, rings = (statistics.median(by_way[way]) for way in WAYS)
        print(f"{what:24}{device:12.1f}{rings:12.1f}{device / rings:8.2f}")


if __name__ == "__main__":
    main()
