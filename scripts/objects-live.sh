#!/usr/bin/env bash
# A cache over segments in an S3 server: fio writes and verifies over NBD while the S3 server is stopped, killed
# and started again, and while frit is killed. Everything is on this machine, and stops by itself.
#
# usage: scripts/objects-live.sh FRIT VERSITYGW [ROUNDS]
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,5s/^# \?//p' "$0"
  exit 2
fi
frit=$(realpath "$1") gateway=$(realpath "$2") rounds=${3:-6}
dir=$(mktemp -d)
server='' program=''
stop() {
  [ -z "$program" ] || kill -9 "$program" 2> /dev/null || true
  [ -z "$server" ] || kill -9 "$server" 2> /dev/null || true
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
  server=$!
  for _ in $(seq 100); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && return
    sleep 0.1
  done
  fail 'the S3 server does not start'
}

cat > "$dir/stack.toml" << END
[media.front]
profile = "pcm-halo-2012"
chip_bytes = "1M"
[media.dimm]
profile = "bnvm-pcm-bytes"
chip_bytes = "16M"
[media.remote]
profile = "s3-standard-2019"
object_bytes = "1M"
objects = 512
connections = 4
url = "s3://bucket/volume?endpoint=http://127.0.0.1:$port&region=us-east-1&timeout_s=20&takeover=at-once"
[cache]
pcm = "front"
disk = "segments"
[segments]
map = "map"
store = "remote"
size = "256M"
[map]
kind = "ntl"
pcm = "dimm"
page_bytes = "4K"
END

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

start_server
"$frit" create "$dir/volume" --stack "$dir/stack.toml" > "$dir/create.log" 2>&1 || fail 'frit create failed'
start_frit
for round in $(seq "$rounds"); do
  # The server goes away under the writes, by a pause or by a kill, and comes back.
  job write --rw=randwrite --do_verify=0 --end_fsync=1 --randseed="$round" &
  writer=$!
  for outage in 1 2 3; do
    sleep 0.5
    if [ $(((round + outage) % 2)) = 0 ]; then
      kill -STOP "$server" && sleep 1 && kill -CONT "$server"
    else
      kill -9 "$server" && { wait "$server" 2> /dev/null || true; } && sleep 1 && start_server
    fi
  done
  wait "$writer" || fail "round $round: writes failed although the server came back"
  # Writes elsewhere are killed with frit. What was flushed has to be there afterwards.
  job noise --rw=randwrite --do_verify=0 --offset=128M --fsync=64 --time_based --runtime=20 &
  noise=$!
  sleep "1.$((round % 10))"
  kill -9 "$program"
  wait "$program" "$noise" 2> /dev/null || true
  start_frit
  job verify --rw=randwrite --verify_only --randseed="$round" || fail "round $round: contents differ"
  grep -q 'verify: bad' "$dir/verify.log" && fail "round $round: contents differ"
  echo "round $round: contents hold; $(find "$dir/s3/bucket" -name 'seg-*' | wc -l) objects"
done
kill "$program"
wait "$program" 2> /dev/null || true
program=''
"$frit" check "$dir/volume" --data > "$dir/check.log" 2>&1 || fail 'the check found damage'
tail -n 1 "$dir/check.log"
