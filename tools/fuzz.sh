#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets of tests/fuzz for a while, two at a time: those of the core under libFuzzer, which build/asan has,
# those of tests/fuzz/python under atheris. All targets run; a fault is printed with its input, and the exit code is 1.
# New inputs go to build/fuzz/corpus/<target>; add inputs that find a fault to tests/fuzz/corpus/<target>.
#   SECONDS_EACH=1200 JOBS=2 tools/fuzz.sh [target...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-60}
out=$PWD/build/fuzz
mkdir -p "$out/faults"

say() { printf 'fuzz: %s\n' "$*"; }
quiet() { # runs a command, shows its output only when it fails
  "$@" >"$out/setup.log" 2>&1 </dev/null || { cat "$out/setup.log" >&2; say "failed: $*" >&2; exit 1; }
}

of_core=() of_python=()
targets=("$@")
if ((${#targets[@]} == 0)); then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi
for target in "${targets[@]}"; do
  if [ -e "tests/fuzz/$target.cpp" ]; then
    of_core+=("$target")
  elif [ -e "tests/fuzz/python/$target.py" ]; then
    of_python+=("$target")
  else
    say "there is no target $target; expected some of $(ls tests/fuzz/corpus | tr '\n' ' ')" >&2
    exit 1
  fi
done

if ((${#of_core[@]})); then
  tools/clang.sh
  compiler=$(tools/clang.sh --or-c++) fresh=()
  grep -qs "^CMAKE_CXX_COMPILER:.*$compiler" build/asan/CMakeCache.txt || fresh=(--fresh) # none, or from before clang was here
  CXX=$compiler quiet cmake --preset asan "${fresh[@]}"
  quiet cmake --build --preset asan --target "${of_core[@]/#/fuzz_}"
fi
if ((${#of_python[@]})); then
  if python -c 'import sys; sys.exit(sys.version_info >= (3, 14))'; then
    python -c 'import atheris' 2>/dev/null || quiet python -m pip install --group fuzz
  else
    say "atheris has no wheel for $(python -V): left out: ${of_python[*]}"
    of_python=()
  fi
fi

run() { # run <target>: its log and what came of it
  local target=$1 command
  local options=(-max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1
    -artifact_prefix="$out/faults/$target-")
  if [ -e "tests/fuzz/$target.cpp" ]; then
    command=("build/asan/tests/fuzz/fuzz_$target" -max_len=16384)
  else
    command=(python tests/fuzz/python/run.py "$target" -max_len=4096)
  fi
  mkdir -p "$out/corpus/$target"
  if ! ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 \
    "${command[@]}" "${options[@]}" "$out/corpus/$target" "tests/fuzz/corpus/$target" >"$out/$target.log" 2>&1; then
    tail -40 "$out/$target.log" >&2
    say "$target found a fault; ${out#"$PWD"/}/$target.log says where, ${out#"$PWD"/}/faults has the input" >&2
    echo "$target" >>"$out/faulty"
    return
  fi
  awk -v target="$target" '
    /^#[0-9]+.* cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") covered = $(i + 1) }
    /^stat::number_of_executed_units/ { inputs = $2 }
    /^stat::new_units_added/ { added = $2 }
    END { printf "fuzz: %-18s %9d inputs, %4d new units, coverage %d\n", target, inputs, added, covered }
  ' "$out/$target.log"
  if ! grep -q ' cov: [1-9]' "$out/$target.log"; then
    say "$target is not seen: no coverage, so that its inputs are not led by it" >&2
    echo "$target" >>"$out/faulty"
  fi
}

say "$((${#of_core[@]} + ${#of_python[@]})) targets for $seconds s each"
rm -f "$out/faulty"
for target in "${of_core[@]}" "${of_python[@]}"; do
  while (($(jobs -rp | wc -l) >= ${JOBS:-2})); do wait -n; done
  run "$target" &
done
wait
[ ! -e "$out/faulty" ]
