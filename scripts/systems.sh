#!/usr/bin/env bash
# Suites against foreign systems, which are too slow for `make test`: libCacheSim, an S3 server, file systems and
# databases on served volumes, POSIX on mounts. At most an hour on two processors; as root for all of them.
#
#   scripts/systems.sh                all suites
#   scripts/systems.sh peers s3       some of them
#   scripts/systems.sh --list         their names
#
# A suite ends after its time. Logs are in out/systems. Each suite adds a row to docs/results/systems.csv: commit it
# with the work that it has tested. Exit code 0: nothing failed; 1: something did.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit

# NAME, limit in minutes, command.
suites=(
  "peers 6 FRIT=target/release/frit scripts/peers.sh test"
  "s3 12 scripts/test-s3.sh"
  "posix 8 scripts/fs-suite.sh --quick"
  "posix-pool 8 scripts/fs-suite.sh --pool --quick"
  "fs-kills 8 scripts/fs-kill.sh --self-test && scripts/fs-kill.sh --kills 20"
  "kills 8 scripts/kill-loop.sh --kills 20"
  "trees 10 scripts/live-trees.sh --kills 3 --no-ext4 mirror tree-four"
)
names() { printf '%s\n' "${suites[@]}" | cut -d' ' -f1; }

for asked in "$@"; do
  [ "$asked" != --list ] || { names; exit 0; }
  names | grep -qx -- "$asked" || { echo "systems: no suite '$asked'; there are: $(names | xargs)" >&2; exit 2; }
done
[ -x target/release/frit ] || { echo "systems: no target/release/frit; run 'make build'" >&2; exit 1; }

mkdir -p out/systems
table=docs/results/systems.csv
[ -s "$table" ] || echo "commit,suite,seconds,result" >"$table"
commit=$(git rev-parse --short=8 HEAD)
[ -z "$(git status --porcelain --untracked-files=no -- crates scripts)" ] || commit+=+
failed=0
for suite in "${suites[@]}"; do
  read -r name minutes command <<<"$suite"
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  log=out/systems/$name.log begin=$SECONDS
  timeout --kill-after=30 "$((minutes * 60))" bash -c "$command" >"$log" 2>&1
  status=$?
  case $status in
    0) result=passed; if grep -q "^[a-z0-9-]*: skipped:" "$log"; then result=skipped; fi ;;
    77) result=skipped ;;
    124 | 137) result="not done in $minutes min"; failed=1 ;;
    *) result="failed ($status)"; failed=1 ;;
  esac
  printf '%-12s %5d s  %s\n' "$name" $((SECONDS - begin)) "$result"
  [[ $result == passed || $result == skipped ]] || tail -n 15 "$log"
  echo "$commit,$name,$((SECONDS - begin)),$result" >>"$table"
done
exit $failed
