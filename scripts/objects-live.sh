#!/usr/bin/env bash
# A cache over segments in an S3 server, whose map is on NTL and then on HFSL: fio writes and verifies over NBD while
# the S3 server is stopped, killed and started again, and while frit is killed. Then frit is killed KILLS times under
# random requests (live_trees.py), with the same outages. Everything is on this machine, and stops by itself.
#
# usage: scripts/objects-live.sh FRIT VERSITYGW [ROUNDS [KILLS]]
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,6s/^# \?//p' "$0"
  exit 2
fi
if [ ! -x "$2" ]; then
  echo "objects-live: there is no program $2: make test-s3 installs versitygw, with Go (Debian: apt-get install golang)" >&2
  exit 1
fi
frit=$(realpath "$1") gateway=$(realpath "$2") rounds=${3:-6} kills=${4:-20}
scripts=$(realpath "$(dirname "$0")")
dir=$(mktemp -d)
program='' outages=''
stop() {
  for process in $outages $program $(cat "$dir/server" 2> /dev/null); do
    kill -9 "$process" 2> /dev/null || true
  done
  wait 2> /dev/null || true
  rm -rf "$dir"
}
trap stop EXIT
fail() {
  echo "objects-live: $1" >&2
  tail -n 5 "$dir"/*.log >&2 || true
  exit 1
}

export AWS_ACCESS_KEY_ID=frit AWS_SECRET_ACCESS_KEY=frit-secret
mkdir -p "$dir/s3/bucket"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_server() {
  "$gateway" --access frit --secret frit-secret --port "127.0.0.1:$port" posix "$dir/s3" > "$dir/s3.log" 2>&1 &
  echo $! > "$dir/server"
  for _ in $(seq 100); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && return
    sleep 0.1
  done
  fail 'the S3 server does not start'
}
# outage KIND: the server goes away for a second, by a pause or by a kill.
outage() {
  local server
  server=$(cat "$dir/server")
  if [ "$1" = pause ]; then
    kill -STOP "$server" && sleep 1 && kill -CONT "$server"
  else
    kill -9 "$server" && { wait "$server" 2> /dev/null || true; } && sleep 1 && start_server
  fi
}

# write_stack LAYER PREFIX: a stack with its map on a layer of this kind, and its objects at this prefix.
write_stack() {
  cat << END
[media.front]
profile = "pcm-halo-2012"
chip_bytes = "1M"
[media.remote]
profile = "s3-standard-2019"
object_bytes = "1M"
objects = 512
connections = 4
url = "s3://bucket/$2?endpoint=http://127.0.0.1:$port&region=us-east-1&timeout_s=20&takeover=at-once"
[cache]
pcm = "front"
disk = "segments"
[segments]
map = "map"
store = "remote"
size = "256M"
END
  case $1 in
    ntl) cat << END
[media.dimm]
profile = "bnvm-pcm-bytes"
chip_bytes = "16M"
[map]
kind = "ntl"
pcm = "dimm"
page_bytes = "4K"
END
    ;;
    hfsl) cat << END
[media.nand]
profile = "slc-k9-2016"
channels = 2
chips_per_channel = 1
blocks_per_plane = 64
[media.pcm]
profile = "pcm-p8p-2016"
chip_bytes = "256K"
[map]
kind = "hfsl"
nand = "nand"
pcm = "pcm"
END
    ;;
  esac
}

start_frit() {
  rm -f "$dir/nbd"
  "$frit" serve "$dir/volume" --nbd "unix:$dir/nbd" > "$dir/frit.log" 2>&1 &
  program=$!
  for _ in $(seq 300); do
    [ -S "$dir/nbd" ] && return
    kill -0 "$program" 2> /dev/null || fail 'frit does not start'
    sleep 0.1
  done
  fail 'frit does not serve'
}
job() {
  timeout 200 fio --name=job --ioengine=nbd --uri="nbd+unix:///?socket=$dir/nbd" --bs=4k --size=64M \
    --verify=crc32c --verify_state_save=0 --minimal "${@:2}" > "$dir/$1.log" 2>&1
}

# rounds_of_fio LAYER: fio verifies after each round what it had flushed before the kill.
rounds_of_fio() {
  rm -rf "$dir/volume"
  write_stack "$1" "fio-$1" > "$dir/stack.toml"
  "$frit" create "$dir/volume" --stack "$dir/stack.toml" > "$dir/create.log" 2>&1 || fail 'frit create failed'
  start_frit
  for round in $(seq "$rounds"); do
    # The server goes away under the writes, and comes back.
    job write --rw=randwrite --do_verify=0 --end_fsync=1 --randseed="$round" &
    writer=$!
    for number in 1 2 3; do
      sleep 0.5
      if [ $(((round + number) % 2)) = 0 ]; then outage pause; else outage kill; fi
    done
    wait "$writer" || fail "map on $1, round $round: writes failed although the server came back"
    # Writes elsewhere are killed with frit. What was flushed has to be there afterwards.
    job noise --rw=randwrite --do_verify=0 --offset=128M --fsync=64 --time_based --runtime=20 &
    noise=$!
    sleep "1.$((round % 10))"
    kill -9 "$program"
    wait "$program" "$noise" 2> /dev/null || true
    start_frit
    job verify --rw=randwrite --verify_only --randseed="$round" || fail "map on $1, round $round: contents differ"
    grep -q 'verify: bad' "$dir/verify.log" && fail "map on $1, round $round: contents differ"
    echo "map on $1, round $round: contents hold; $(find "$dir/s3/bucket" -name 'seg-*' | wc -l) objects"
  done
  kill "$program"
  wait "$program" 2> /dev/null || true
  program=''
  "$frit" check "$dir/volume" --data > "$dir/check.log" 2>&1 || fail 'the check found damage'
  tail -n 1 "$dir/check.log"
}

# random_kills LAYER: frit is killed under random requests, while the server goes away again and again.
random_kills() {
  write_stack "$1" "kills-$1" > "$dir/stack.toml"
  (while true; do for kind in pause kill; do sleep "$((RANDOM % 3 + 1))"; outage "$kind"; done; done) &
  outages=$!
  local code=0
  "$scripts/live-trees.sh" --frit "$frit" --stack "$dir/stack.toml" --kills "$kills" --no-ext4 || code=$?
  kill -9 "$outages"
  wait "$outages" 2> /dev/null || true
  outages=''
  [ "$code" = 77 ] || [ "$code" = 0 ] || fail "map on $1: kills under random requests"
  # An outage may have been under way.
  kill -CONT "$(cat "$dir/server")" 2> /dev/null || start_server
}

start_server
for layer in ntl hfsl; do
  rounds_of_fio "$layer"
  random_kills "$layer"
done
