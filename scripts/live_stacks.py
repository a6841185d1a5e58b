"""The stacks that live_trees.py serves, and what they promise."""

import errno
import pathlib

from shadow import BLOCK

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
LIVE, TORTURED = REPOSITORY / "scripts/live", REPOSITORY / "crates/torture/stacks"


class Stack:
    """A stack, and its promises: `durable` at the acknowledgement ("ack") or the "flush"; `atomic` bytes of a write,
    and `zeros` of a discard: a cache zeros the disk, and then removes the parts of blocks that it has."""

    def __init__(self, name, stack, durable="ack", atomic=BLOCK, kind="tree", errors=(), zeros=None):
        self.name, self.stack = name, str(stack)
        self.durable, self.atomic, self.zeros = durable, atomic, zeros or atomic
        self.kind, self.errors = kind, errors  # composer, tree, faults or broken; errors that clients may get


def live(name, *more, kind="composer", **promises):
    return Stack(name, LIVE / f"{name}.toml", *more, kind=kind, **promises)


def faults(name, *more, errors=(errno.EIO, errno.ENOSPC, errno.EPERM), **promises):
    """A stack with a device that fails. A cache becomes full, others refuse writes until they are opened again."""
    return live(name, *more, kind="faults", errors=errors, **promises)


def tortured(name, larger, *more, **promises):
    """A tree of the torture, which is small, with larger media."""
    settings = [f"{TORTURED / name}.toml", *(f"{k}={v}" for k, v in larger.items())]
    return Stack(name, ",".join(settings), *more, **promises)


SSD = {"media.ssd-nand.blocks_per_plane": 640}

STACKS = [
    live("concat", "ack", 512), live("stripe", "ack", 512), live("mirror", "ack", 512), live("delay", "ack", 512),
    live("host-link", "ack", 512),
    live("flaky", "ack", 512), live("record", "ack", 512), live("thin", "flush", 512), live("compress", "flush"),
    live("segments", "flush"),
    tortured("tree-concat", {**SSD, "media.d1.bytes": "128M"}, "ack", 512), tortured("tree-four", SSD, zeros=512),
    tortured("tree-halo-ftl", SSD, zeros=512), tortured("tree-halo-hfsl", SSD, zeros=512),
    Stack("ftl-small", "ftl-small", "flush"), Stack("ftl-page", "ftl-small,merge_buffer=0", kind="composer"),
    Stack("flashtier-small", "flashtier-small", "flush", 512),
    Stack("flashtier-sync", "flashtier-small,durability=synchronous", zeros=512, kind="composer"),
    tortured("flashcache-ftl", {"media.nand.blocks_per_plane": 400, "media.disk.bytes": "256M"}, "flush", 512),
    tortured("ssc-alone", {"media.nand.blocks_per_plane": 400, "media.nand.pages_per_block": 64}, "flush"),
    Stack("nameless-small", "nameless-small", "flush"),
    tortured("tree-halo-ssc", {"media.cache-nand.blocks_per_plane": 64, "media.d1.bytes": "128M"}, zeros=512),
    tortured("tree-halo-ntl", {"media.chips.chip_bytes": "32M"}, zeros=512),
    tortured("tree-halo-stripe", {"media.d1.bytes": "128M", "media.d2.bytes": "128M"}, zeros=512),
    tortured("tree-mixed", {**SSD, "media.d1.bytes": "128M"}, zeros=512),
    tortured("tree-nand-array", {f"media.nand-{side}.blocks_per_plane": 512 for side in "ab"}, zeros=512),
    tortured("tree-segments", {
        "media.front.chips_per_channel": 8, "media.front.chip_bytes": "1M", "media.remote.object_bytes": "1M",
        "media.remote.objects": 640, "segments.size": "256M"}, zeros=512),
    tortured("tree-stripe", {"media.a-nand.blocks_per_plane": 512, "media.b-nand.blocks_per_plane": 512}),
    tortured("tree-two-caches", {"media.d1.bytes": "256M"}, zeros=512),
    Stack("halo-hfsl", "halo-hfsl", zeros=512), Stack("halo-mirror", "halo-mirror", zeros=512),
    Stack("halo-thin", "halo-thin", zeros=512),
    Stack("four-layers", "four-layers", zeros=512), Stack("hfsl-two-nand", "hfsl-two-nand"),
    Stack("halo-objects", "halo-objects,log.size=1G,media.remote.objects=512,media.remote.url=objects", zeros=512),
    faults("flaky-faults", "ack", 512), faults("thin-faults", "flush", 512), faults("compress-faults", "flush"),
    faults("segments-faults", "flush"), faults("cache-faults", zeros=512),
    faults("mirror-faults", "ack", 512, errors=()),
    Stack("lost-writes", "ntl-small,log_buffer=dram,media.pcm.chip_bytes=32M", kind="broken"),
    live("lost-flushes", "flush", kind="broken"), live("corrupt-reads", "ack", 512, kind="broken"),
]
