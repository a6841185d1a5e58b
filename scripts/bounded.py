"""Programs that run for a bounded time, and waits that end: for the scripts that kill servers."""

import random
import subprocess
import time
import zlib


class Violation(Exception):
    """Something that must not happen."""


def run(*words, seconds=60, check=True, **more):
    """Runs a program, for a bounded time, and returns what it said."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=seconds, **more)
    except subprocess.TimeoutExpired as e:
        raise Violation(f"{' '.join(map(str, words))} did not end within {seconds} s: {e.output!r}") from e
    if check and done.returncode != 0:
        raise Violation(f"{' '.join(map(str, words))} failed ({done.returncode}): {done.stdout.strip()}")
    return done


def until(what, seconds, look):
    """Waits until `look` returns something, for a bounded time."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise Violation(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def payload(client, number):
    """What a record holds: it can be computed again."""
    rng = random.Random(client * 1_000_003 + number)
    text = rng.randbytes(rng.randint(5, 1000)).hex()
    return f"{zlib.crc32(text.encode()):08x}{text}"
