#!/usr/bin/env python3
"""Compares latencies of frit and of the model of MQSim's source on drives that are drawn at random.

A drive has random shape, plane allocation scheme, cells, page size, transfer rate and link. It is filled,
and gets random requests or requests in order, of whole pages and of parts, at a random depth. Each request is
compared by scripts/models/mqsim_timing.py. With --cache, drives have a data cache of random size and DRAM,
requests may be in a small part of the drive, and the model is mqsim_cache.py. Drives with little NAND are left
out: they would collect garbage, which the models do not cover.

Example:
  scripts/mqsim_drives.py --count 100 --seed 1     exits with 1 if a request differs by more than 3 %
  scripts/mqsim_drives.py --count 100 --cache
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FRIT = os.environ.get("FRIT", str(ROOT / "target" / "release" / "frit"))
MODELS = ROOT / "scripts" / "models"
CONFIG = ROOT / "examples" / "mqsim-ssdconfig.xml"


def draw_cache(rng, page):
    """Values of a data cache, a caching mode, and the range of the requests."""
    values = {
        "Data_Cache_Capacity": page * rng.choice([1024, 4096, 65536]),
        "Data_Cache_DRAM_Row_Size": rng.choice([2048, 4096, 8192, 16384]),
        "Data_Cache_DRAM_Data_Rate": rng.choice([400, 800, 1600]),
        "Data_Cache_DRAM_Data_Busrt_Size": rng.choice([1, 4, 8]),
        "Data_Cache_DRAM_tRCD": rng.choice([13, 20]),
    }
    mode = rng.choice(["write-cache", "write-cache", "read-cache", "write-read-cache"])
    return values, mode, rng.choice(["", "", f",span={page * rng.choice([128, 1024])}"])


def draw(rng, cache):
    """Values of a configuration, a caching mode, a workload and a depth; None for a drive that is too small."""
    shape = [rng.choice(v) for v in ([1, 2, 3, 4, 8], [1, 2, 4, 5], [1, 1, 2, 4], [1, 2, 4])]
    names = ["Flash_Channel_Count", "Chip_No_Per_Channel", "Die_No_Per_Chip", "Plane_No_Per_Die"]
    page = rng.choice([4096, 8192, 16384])
    values = dict(zip(names, shape)) | {
        "Plane_Allocation_Scheme": "".join(rng.sample("CWDP", 4)),
        "Flash_Technology": rng.choice(["SLC", "MLC", "TLC"]),
        "Channel_Transfer_Rate": rng.choice([166, 200, 333, 500, 667, 800]),
        "Flash_Channel_Width": rng.choice([1, 1, 2]),
        "Page_Capacity": page,
        "Page_No_Per_Block": rng.choice([64, 128]),
        "Block_No_Per_Plane": 64,
        "PCIe_Lane_Count": rng.choice([1, 2, 4, 8]),
        "PCIe_Lane_Bandwidth": rng.choice([0.5, 1.0, 2.0]),
    }
    size = rng.choice([page // 2, page, 2 * page, 4 * page, page * 3 // 2])
    operations = rng.choice(["read=1", "read=0.7", "read=0.5", "ops=write"])
    in_order = rng.choice([False, True])
    workload = (f"gen:sequential,count=200,{rng.choice(['read=1', 'ops=write'])},size={size},align={size}" if in_order
                else f"gen:uniform,count=300,{operations},size={size},align={rng.choice([page, 4096])}")
    depth = rng.choice([1, 2, 8, 16, 32, 64])
    mode = "turned-off"
    if cache:
        more, mode, span = draw_cache(rng, page)
        values, workload = values | more, workload + ("" if in_order else span)
    planes = shape[0] * shape[1] * shape[2] * shape[3]
    return (values, mode, workload, depth) if planes >= 4 else None


def configuration(values):
    text = CONFIG.read_text()
    # The third type of page, which the example's cells do not have.
    for kind, ns in (("Read", 75000), ("Program", 700000)):
        text = text.replace(f"<Page_{kind}_Latency_MSB>",
                            f"<Page_{kind}_Latency_CSB>{ns}</Page_{kind}_Latency_CSB>\n      <Page_{kind}_Latency_MSB>")
    for name, value in values.items():
        text, found = re.subn(f"<{name}>[^<]*<", f"<{name}>{value}<", text)
        assert found == 1, name
    return text


def compare(values, mode, workload, depth, within):
    """Last line of the model, and True if no request differs."""
    model = ["mqsim_timing.py"] if mode == "turned-off" else ["mqsim_cache.py", "--caching", mode]
    with tempfile.TemporaryDirectory() as folder:
        config, stack, requests = (os.path.join(folder, name) for name in ("c.xml", "ssd.toml", "requests.csv"))
        pathlib.Path(config).write_text(configuration(values))
        text = subprocess.run([FRIT, "mqsim", "--caching", mode, config], check=True, capture_output=True, text=True).stdout
        pathlib.Path(stack).write_text(text)
        subprocess.run([FRIT, "run", "--quiet", "--wrap", "--warm", "fill", "--qd", str(depth), "--requests", requests,
                        stack, workload], check=True, capture_output=True)
        filled = tomllib.loads(text)["ssd"]["capacity"]
        command = [sys.executable, "-B", str(MODELS / model[0]), config, requests, *model[1:], "--depth", str(depth),
                   "--filled", str(filled), "--within", str(within)]
        run = subprocess.run(command, capture_output=True, text=True)
        return run.stdout.strip().splitlines()[-1], run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="drives to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", action="store_true", help="drives with a data cache")
    parser.add_argument("--within", type=float, default=0.03, help="largest relative difference of a request")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    drives = [drive for drive in (draw(rng, args.cache) for _ in range(args.count)) if drive]
    different = 0
    for values, mode, workload, depth in drives:
        said, equal = compare(values, mode, workload, depth, args.within)
        if not equal:
            different += 1
            print(f"{values}\n  {mode}, {workload}, depth {depth}: {said}")
    print(f"{len(drives)} drives, {different} with requests that differ by more than {args.within:.2%}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
