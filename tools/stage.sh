#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/stage.sh <name> <command>...: runs one stage of a longer run and prints its time.
# build/stages.txt collects the times of all stages until it is removed.
set -uo pipefail
name=$1
shift
printf '\n=== %s\n' "$name"
start=$(date +%s.%N)
"$@"
rc=$?
mkdir -p build
line=$(awk -v a="$start" -v b="$(date +%s.%N)" -v name="$name" -v rc="$rc" \
  'BEGIN { printf "%-28s %7.1f s  %s", name, b - a, rc == 0 ? "ok" : "FAILED (" rc ")" }')
printf '=== %s\n' "$line"
printf '%s\n' "$line" >>build/stages.txt
exit "$rc"
