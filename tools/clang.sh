#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clang 19, which compiles the builds for sanitizers and fuzzers.
#   tools/clang.sh             installs it unless it is here; the exit code says whether it is here then
#   tools/clang.sh --or-c++    prints the compiler for sanitizers: clang++-19 if it is here, else c++
set -euo pipefail

say() { printf 'clang: %s\n' "$*" >&2; }
is_here() {
  command -v clang++-19 >/dev/null && ls /usr/lib/llvm-19/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1
}

if [ "${1:-}" = --or-c++ ]; then
  if is_here; then echo clang++-19; else echo c++; fi
  exit 0
fi
if is_here; then exit 0; fi
root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { say "as root: apt-get install clang-19 libclang-rt-19-dev"; exit 1; }
  root=(sudo)
fi
command -v apt-get >/dev/null || { say "needs clang 19 with libFuzzer, and there is no apt-get here"; exit 1; }
say "apt-get install clang-19 libclang-rt-19-dev"
apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" 2>&1 </dev/null; }
install() { apt install -y --no-install-recommends clang-19 libclang-rt-19-dev; }
if ! log=$(install); then # the package lists may be old or absent
  log=$(apt update) && log=$(install) || {
    printf '%s\n' "$log" >&2
    say "this system has no package clang-19 (Debian 12: bookworm-backports or apt.llvm.org)"
    exit 1
  }
fi
