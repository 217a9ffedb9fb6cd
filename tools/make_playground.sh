#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the playground of the documentation into build/playground/site/playground: a page without a server.
#   tools/make_playground.sh              compiles, and puts the page together
#   tools/make_playground.sh --compile    only compiles build/playground/wasm/playground.js, which needs no Python package
# A machine whose Emscripten is too old can compile in a newer system that has this folder mounted, and then put the
# page together itself. Exit code 3: Emscripten is missing, and nothing was compiled before.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=3.1.60 # Debian 12's 3.1.6 lacks algorithms over ranges
work=build/playground
say() { printf 'playground: %s\n' "$*"; }

is_new_enough() {
  command -v em++ emcmake >/dev/null || return 1
  local version
  version=$(em++ --version | sed -nE '1s/.* ([0-9]+\.[0-9]+\.[0-9]+) .*/\1/p')
  [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -1)" = "$oldest" ]
}

if is_new_enough; then
  fmt=/usr/include/fmt
  [ ! -d /usr/local/include/fmt ] || fmt=/usr/local/include/fmt
  [ -d "$fmt" ] || { say "the headers of fmt are missing; run apt-get install libfmt-dev, then run make playground"; exit 3; }
  mkdir -p "$work/include"
  ln -sfn "$fmt" "$work/include/" # the system's other headers are not Emscripten's
  emcmake cmake -S playground -B "$work/wasm" -G Ninja -DARTIFEX_FMT_INCLUDE="$PWD/$work/include" >"$work/cmake.log" 2>&1 ||
    { cat "$work/cmake.log" >&2; exit 1; }
  ninja -C "$work/wasm" --quiet
elif [ -e "$work/wasm/playground.js" ]; then
  say "em++ $oldest or newer is missing; uses $work/wasm/playground.js, which was compiled before"
else
  say "em++ $oldest or newer is missing; install emscripten from Debian 13 or from emscripten.org, then run make playground"
  exit 3
fi
[ "${1:-}" = --compile ] && exit

site=$work/site/playground
rm -rf "$site"
mkdir -p "$site"
cp playground/page/* "$work/wasm/playground.js" "$site"
python playground/catalogue.py >"$site/catalogue.js"
say "$site/index.html, $(du -cb "$site"/* | awk 'END { printf "%.2f MB", $1 / 1e6 }')"
