#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzz target of tests/fuzz for a while under libFuzzer, one after the other; stops at the first fault, whose input
# it names. New inputs go to build/fuzz/corpus/<target>; what finds a fault belongs in tests/fuzz/corpus/<target>.
#   SECONDS_EACH=600 tools/fuzz.sh [target...]
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang++-19 >/dev/null && ls /usr/lib/llvm-19/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 || {
  echo "fuzz: needs clang 19 with libFuzzer: apt-get install clang-19 libclang-rt-19-dev" >&2
  exit 1
}
targets=("$@")
if ((${#targets[@]} == 0)); then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi

cmake --preset fuzz >build/fuzz.log 2>&1 || { cat build/fuzz.log >&2; exit 1; }
cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}"
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/faults"
  echo "fuzz: $target for ${SECONDS_EACH:-60} s"
  "$(find build/fuzz -name "fuzz_$target" -type f)" -max_total_time="${SECONDS_EACH:-60}" -timeout=10 -rss_limit_mb=2048 \
    -max_len=16384 -print_final_stats=1 -artifact_prefix="build/fuzz/faults/$target-" \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"build/fuzz/$target.log" 2>&1 || {
    tail -40 "build/fuzz/$target.log" >&2
    echo "fuzz: $target found a fault; build/fuzz/$target.log says where, build/fuzz/faults has the input" >&2
    exit 1
  }
  grep -E '^stat::(number_of_executed_units|new_units_added)|^#.*DONE' "build/fuzz/$target.log"
done
