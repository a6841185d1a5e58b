#!/bin/bash
# postgres.sh BIN DIRECTORY SOCKETS SECONDS SCALE: PostgreSQL with its data in DIRECTORY: initdb with checksums, pgbench,
# a stop at once (so that the next start recovers), the sums of pgbench's tables, pg_amcheck, pg_checksums.
set -eu -o pipefail
bin=$1 data=$2/data sockets=$3 secs=$4 scale=$5
user=postgres
id -u postgres >/dev/null 2>&1 || user=nobody
mkdir -p "$data" "$sockets"
chown "$user" "$data" "$sockets"
chmod 700 "$data"
cd /
as() { runuser -u "$user" -- "$@"; }
trap 'as "$bin/pg_ctl" -D "$data" -m immediate -t 20 stop >/dev/null 2>&1 || true' EXIT
up() { as "$bin/pg_ctl" -D "$data" -l "$sockets/log" -w -t 120 start >/dev/null || { tail -5 "$sockets/log"; exit 1; }; }
sql() { as "$bin/psql" -h "$sockets" -U postgres -d postgres -XAtq -v ON_ERROR_STOP=1 -c "$1"; }

as "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-locale --data-checksums >/dev/null
cat >>"$data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$sockets'
fsync = on
synchronous_commit = on
shared_buffers = 16MB
max_wal_size = 64MB
min_wal_size = 32MB
dynamic_shared_memory_type = mmap
CONF
up
as "$bin/pgbench" -q -i -s "$scale" -h "$sockets" -U postgres postgres
as "$bin/pgbench" -c 4 -j 2 -T "$secs" -h "$sockets" -U postgres postgres
as "$bin/pg_ctl" -D "$data" -m immediate -w -t 60 stop >/dev/null
up
[ "$(sql "select count(distinct s) from (select sum(abalance) s from pgbench_accounts union all
  select sum(bbalance) from pgbench_branches union all select sum(tbalance) from pgbench_tellers union all
  select coalesce(sum(delta), 0) from pgbench_history) t")" = 1 ] || { echo "the sums of pgbench's tables differ"; exit 1; }
if sql 'create extension amcheck' 2>/dev/null; then
  as "$bin/pg_amcheck" --heapallindexed -h "$sockets" -U postgres postgres
fi
as "$bin/pg_ctl" -D "$data" -m fast -w -t 120 stop >/dev/null
as "$bin/pg_checksums" --check -D "$data"
