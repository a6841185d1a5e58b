"""Latency of fio, and work that is repeated beside it: for benchmarks of in-storage processing."""

import concurrent.futures
import contextlib
import json
import subprocess
import threading


def fio(options, kind, rate, seconds):
    """p50, p99 and p99.9 in µs of requests of 4 KiB at queue depth 1, `rate` a second or, with 0, without a pause."""
    command = [
        "fio", "--name=f", "--bs=4k", "--iodepth=1", f"--rw={kind}", f"--runtime={seconds}", "--time_based",
        "--output-format=json", "--percentile_list=50:99:99.9", *([f"--rate_iops={rate}"] if rate else []), *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    percentiles = job["read" if kind == "randread" else "write"]["clat_ns"]["percentile"]
    return [nanos / 1000 for nanos in percentiles.values()]


@contextlib.contextmanager
def repeated(client, threads=1):
    """Repeats calls in threads. Each thread enters `client()` and calls its value.

    Yields a function that returns the number of calls that have ended. A call that fails, fails the block at its end.
    """
    ended, done = threading.Event(), []

    def repeat():
        with client() as call:
            while not ended.is_set():
                call()
                done.append(None)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(repeat) for _ in range(threads)]
        try:
            yield lambda: len(done)
        finally:
            ended.set()
        for thread in running:
            thread.result()
