# Cases, their bounds, lines and table. Sourced by scripts/fs-suite.sh, which sets kind, logs, suite, pattern and daemon.
# shellcheck shell=bash disable=SC2154

lines=() job='' log=''
declare -A passes failures skips seconds
order=()

# line STATUS NAME SECONDS NOTE
line() {
  local text
  text=$(printf '%-8s %-10s %-34s %7.1f s  %s' "$1" "$suite" "$2" "$3" "$4")
  echo "$text"
  [ "$1" = passed ] || lines+=("$text")
  [[ " ${order[*]} " = *" $suite "* ]] || order+=("$suite")
  seconds[$suite]=$(awk "BEGIN {print ${seconds[$suite]:-0} + $3}")
}
passed() { line passed "$@"; passes[$suite]=$((${passes[$suite]:-0} + 1)); }
failed() { line FAILED "$@"; failures[$suite]=$((${failures[$suite]:-0} + 1)); }
skipped() { line skipped "$1" 0 "$2"; skips[$suite]=$((${skips[$suite]:-0} + 1)); }

# named NAME: the reason why a case is skipped on this kind of file system, from scripts/fs/skips.txt.
named() {
  awk -v kind="$kind" -v name="$suite:$1" '$1 == kind && $2 == name {$1 = $2 = ""; print substr($0, 3); exit}' \
    scripts/fs/skips.txt
}

# has PROGRAM PACKAGE NAME: whether a program is there; else the case is skipped.
has() {
  command -v "$1" >/dev/null && return
  skipped "$3" "no $1 on this machine (Debian: apt-get install $2)"
  return 1
}

stop_job() { [ -n "$job" ] && kill "$job" 2>/dev/null; job=; }

# bounded SECONDS COMMAND...: output goes to $log. What waits in the kernel for a daemon that hangs does not even end by
# SIGKILL; timeout does not wait for it then.
bounded() {
  local bound=$1 code; shift
  local through=()
  [ "$suite" = system ] || through=("${wrap[@]}")
  timeout -k 10 "$bound" "${through[@]}" "$@" >"$log" 2>&1 </dev/null & job=$!
  wait "$job" 2>/dev/null; code=$?
  job=
  case $code in 124|137) end_if_hung;; esac
  return $code
}

# reason_in LOG: the first line that says so, or the last one.
reason_in() {
  { grep -m1 -E '(fail|error):' "$1" || grep -vE '^\s*$' "$1" | tail -1; } | cut -c1-200
}

# run NAME BOUND COMMAND...: one case. A function of the shell runs as it is, and bounds itself. `note` is a command
# that makes a note of the log; `judge` one that fails, or says "skip: reason", after a command that succeeded.
run() {
  local name=$1 bound=$2 began took code reason text=; shift 2
  [ "$suite" = system ] || [[ $name =~ $pattern ]] || return 0
  reason=$(named "$name")
  [ -z "$reason" ] || { skipped "$name" "$reason"; return 0; }
  log=$logs/$suite-${name//[ \/]/-}.log
  began=$EPOCHREALTIME
  if declare -F "$1" >/dev/null; then "$@" >"$log" 2>&1; else bounded "$bound" "$@"; fi
  code=$?
  took=$(awk "BEGIN {print $EPOCHREALTIME - $began}")
  if [ $code = 0 ] && [ -n "${judge:-}" ]; then
    text=$(eval "$judge" <"$log") || code=judged
    [[ $text != skip:* ]] || { skipped "$name" "${text#skip: }"; return 0; }
  fi
  [ -z "${note:-}" ] || text=$(eval "$note" <"$log" | tail -1)
  case $code in
    0) passed "$name" "$took" "$text"; return 0;;
    judged) failed "$name" "$took" "$text";;
    124|137) failed "$name" "$took" "not done within $bound s";;
    *) failed "$name" "$took" "exit code $code: ${text:-$(reason_in "$log")}";;
  esac
  return 1
}

# table: what came of all; the exit code of the suite.
table() {
  local s bad=0
  printf '\n%-12s %7s %7s %7s %9s\n' "on $kind" passed failed skipped seconds
  for s in "${order[@]}"; do
    printf '%-12s %7d %7d %7d %9.1f\n' "$s" "${passes[$s]:-0}" "${failures[$s]:-0}" "${skips[$s]:-0}" "${seconds[$s]}"
    bad=$((bad + ${failures[$s]:-0}))
  done
  [ ${#lines[@]} = 0 ] || { echo; printf '%s\n' "${lines[@]}"; }
  echo
  if [ $bad = 0 ]; then echo "nothing failed"; else echo "$bad failed; logs are in $logs"; return 1; fi
}
