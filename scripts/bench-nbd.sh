#!/bin/bash
# fio over NBD on a Unix socket: frit (HFSL with PCM and NAND, checksums on, files on tmpfs) beside
# `nbdkit memory` in the same run, pinned the same way; medians of the rounds. Each round has the two in the
# other order and each job a warm-up: after reads the kernel's socket buffers are cold for whoever writes first.
#
#   scripts/bench-nbd.sh                     the program at target/release/frit
#   FRIT=/path/to/frit ROUNDS=5 SECONDS_EACH=3 scripts/bench-nbd.sh
#   STACK=stacks/hfsl-small.toml scripts/bench-nbd.sh
#   PREFIX="chrt -f 1" scripts/bench-nbd.sh  servers and clients before all else, on a machine that is busy
#
# What it measures is the server: both hold all data in memory. Only the ratios count; see docs/guide/serve.md.
set -euo pipefail
cd "$(dirname "$0")/.."

FRIT=${FRIT:-target/release/frit}
STACK=${STACK:-stacks/bench-volume.toml}
ROUNDS=${ROUNDS:-4}
SECONDS_EACH=${SECONDS_EACH:-2}
PREFIX=${PREFIX:-}

for tool in fio nbdkit python3 taskset; do
  command -v "$tool" >/dev/null || { echo "bench-nbd: skipped, no $tool on this machine" >&2; exit 0; }
done
[ "$(nproc)" -ge 2 ] || { echo "bench-nbd: skipped, it pins server and client to two cores" >&2; exit 0; }
[ -x "$FRIT" ] || { echo "bench-nbd: no $FRIT; run 'make build'" >&2; exit 1; }

dir=$(mktemp -d -p /dev/shm frit-bench-nbd.XXXXXX)
pids=()
stop() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap stop EXIT

"$FRIT" create "$dir/volume" --stack "$STACK" >"$dir/create.txt"
taskset -c 0 $PREFIX "$FRIT" serve "$dir/volume" --nbd "unix:$dir/frit.sock" >"$dir/serve.txt" &
pids+=($!)
for _ in $(seq 100); do [ -s "$dir/serve.txt" ] && break; sleep 0.1; done
bytes=$(python3 - "$dir/create.txt" <<'PY'
import re, sys
print(re.search(r"\((\d+) bytes\)", open(sys.argv[1]).read()).group(1))
PY
)
taskset -c 0 $PREFIX nbdkit --foreground -U "$dir/nbdkit.sock" memory "$bytes" &
pids+=($!)
for _ in $(seq 100); do [ -S "$dir/nbdkit.sock" ] && break; sleep 0.1; done

# fio's job on a server; its JSON goes to a file.
job() { # server core file arguments…
  local server=$1 core=$2 file=$3
  shift 3
  taskset -c "$core" $PREFIX fio --name="$server" --ioengine=nbd --uri="nbd+unix:///?socket=$dir/$server.sock" \
    --norandommap --randrepeat=0 --output-format=json --output="$file" "$@" >/dev/null
}

# Every page is there before anything is measured, and every block of NAND was used: three times over.
for server in frit nbdkit; do
  for _ in 1 2 3; do job $server 1 "$dir/fill.json" --rw=write --bs=128k --iodepth=16; done
done

# Requests of 128 KiB first, while pages lie as a sequential fill put them; then random writes of 4 KiB, which
# scatter them; then sequential reads of what is scattered.
measure() { # when cells…
  local state=$1 cell rw bs qd core server order
  shift
  for round in $(seq "$ROUNDS"); do
    order="frit nbdkit"
    [ $((round % 2)) = 1 ] || order="nbdkit frit"
    for cell in "$@"; do
      read -r rw bs qd core <<<"$cell"
      for server in $order; do
        job $server "$core" "$dir/$server-$rw-$bs-$qd-$core-$state-$round.json" --rw="$rw" --bs="$bs" \
          --iodepth="$qd" --time_based --ramp_time=1 --runtime="$SECONDS_EACH" --fsync=0
      done
    done
  done
  for cell in "$@"; do cells+=("$cell $state"); done
}
cells=()
measure filled "read 128k 16 1" "write 128k 16 1"
small=()
for qd in 1 16 32; do small+=("randread 4k $qd 1" "randwrite 4k $qd 1"); done
measure random "${small[@]}" "randread 4k 1 0" "randwrite 4k 1 0" "read 128k 16 1"

python3 - "$dir" "$ROUNDS" "${cells[@]}" <<'PY'
import json, statistics, sys

dir, rounds, cells = sys.argv[1], int(sys.argv[2]), sys.argv[3:]

def figures(server, rw, bs, qd, core, state):
    iops, p99 = [], []
    for r in range(1, rounds + 1):
        text = open(f"{dir}/{server}-{rw}-{bs}-{qd}-{core}-{state}-{r}.json").read()
        job = json.loads(text[text.index("{"):])["jobs"][0]
        assert job["error"] == 0, f"{server}: fio failed"
        side = job["read" if "read" in rw else "write"]
        iops.append(side["iops"])
        p99.append(side["clat_ns"]["percentile"]["99.000000"] / 1000)
    return statistics.median(iops), statistics.median(p99)

print(f"{'NBD over a Unix socket':26} {'frit':>10} {'nbdkit':>10} {'ratio':>6}   {'p99 us':>7} {'nbdkit':>7} {'ratio':>6}")
for cell in cells:
    rw, bs, qd, core, state = cell.split()
    (a, ap), (b, bp) = figures("frit", *cell.split()), figures("nbdkit", *cell.split())
    unit = " IOPS" if bs == "4k" else " MiB/s"
    if bs != "4k":
        a, b = a / 8, b / 8  # requests of 128 KiB
    name = f"{rw} {bs} QD {qd}" + (" one core" if core == "0" else "")
    name += ", scattered" if bs != "4k" and state == "random" else ""
    print(f"{name:26} {a:10.0f} {b:10.0f} {a / b:6.2f}   {ap:7.0f} {bp:7.0f} {ap / bp:6.2f} {unit}")
PY
