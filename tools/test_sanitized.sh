#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/test_sanitized.sh <pytest arguments>: Python tests with the extension of build/asan, under the address and
# undefined-behaviour sanitizers. The interpreter is not sanitized: their libraries are loaded before it, and the memory
# of its objects comes from malloc, where the address sanitizer sees it. Leaks are not checked, because the interpreter
# keeps memory until its end: tests/torture/test_growth.py counts bytes, and the C++ tests have the leak sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob
built=("$PWD"/build/asan/cpp/bindings/_core*.so)
export SANITIZED_CORE=${SANITIZED_CORE:-${built[0]:?no extension in build/asan; first: cmake --build --preset asan}}
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' build/asan/CMakeCache.txt)
library() { "$compiler" -print-file-name="$1"; }
if "$compiler" --version | grep -q clang; then # its library has both sanitizers
  sanitizers=$(library "libclang_rt.asan-$(uname -m).so")
else
  sanitizers="$(library libasan.so) $(library libubsan.so)"
fi
# libstdc++ too, in which the sanitizers search at start for the functions that throw.
preload="$sanitizers $(library libstdc++.so)"
# Participants of cooperative programs have stacks that greenlet copies away and back; a stack elsewhere for the sanitizer
# (detect_stack_use_after_return) would not be copied with them.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:external_symbolizer_path=/usr/bin/addr2line:halt_on_error=1:detect_stack_use_after_return=0:suppressions=$PWD/tests/sanitized/address.supp
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONMALLOC=malloc PYTHONPATH=$PWD/tests/sanitized${PYTHONPATH:+:$PYTHONPATH}

# First check that this extension is loaded, and that an out-of-bounds write stops the process.
LD_PRELOAD=$preload python -c '
import os
from artifex_devices import _core
assert _core.__file__ == os.environ["SANITIZED_CORE"], _core.__file__
assert all(name in open(_core.__file__, "rb").read() for name in (b"__asan_init", b"__ubsan_handle_"))'
report=$(LD_PRELOAD=$preload python -c 'import ctypes; ctypes.memset(ctypes.create_string_buffer(64), 1, 4096)' 2>&1) || true
grep -q 'ERROR: AddressSanitizer: heap-buffer-overflow' <<<"$report" ||
  { printf 'The address sanitizer did not stop an out-of-bounds write:\n%s\n' "$report" >&2; exit 1; }

LD_PRELOAD=$preload exec python -m pytest "$@"
