#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/test_free_threaded.sh [<pytest arguments>]: Python tests with the GIL off. First each test of FOLDERS runs once, then
# each test of PARALLEL_FOLDERS in four threads at once (pytest-run-parallel).
#   FOLDERS=tests/python/spmd PARALLEL_FOLDERS= tools/test_free_threaded.sh    chooses the tests
#   PYTHON=python3.14t tools/test_free_threaded.sh    chooses the interpreter; by default tools/build_python.sh builds 3.13t
# build/free_threaded has the environment, and the extensions without optimization.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_CONSTRAINT # of the pinned versions, some have no wheels for 3.13t
tree=$PWD/build/free_threaded
venv=$tree/venv
log=$tree/log
die() { printf 'test_free_threaded: %s\n' "$*" >&2; exit 1; }
quiet() { "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; die "failed: $*"; }; }
python=${PYTHON:-$(tools/build_python.sh 3.13t)}
[ "$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("Py_GIL_DISABLED"))')" = 1 ] ||
  die "$python has the GIL; expected a free-threaded interpreter; leave out PYTHON to build one"

mkdir -p "$tree"
want=$(cat pyproject.toml tools/test_free_threaded.sh <(echo "$PWD" "$python") | sha256sum)
if [ "$(cat "$venv/stamp" 2>/dev/null)" != "$want" ]; then
  rm -rf "$venv"
  quiet "$python" -m venv "$venv"
  quiet "$venv/bin/python" -m pip install --upgrade 'pip>=25.1'
  # greenlet has to be compiled for 3.13t, whose functions for critical sections it calls without including their
  # declarations. CXXFLAGS replaces Python's flags: without NDEBUG, code of greenlet for its authors ends the process
  # where Ctrl-C comes while it formats an error. A wheel in pip's cache may have been built so.
  cat >"$tree/critical_sections.h" <<'HEADER'
#include <Python.h>
#ifdef __cplusplus
extern "C" void _PyCriticalSection_SuspendAll(PyThreadState*);
extern "C" void _PyCriticalSection_Resume(PyThreadState*);
#endif
HEADER
  CXXFLAGS="-O2 -DNDEBUG -include $tree/critical_sections.h" quiet "$venv/bin/python" -m pip install --no-cache-dir \
    --prefer-binary 'greenlet>=3.5.4'
  # What the tests can do without (cuda-bindings, pyright) is left out. mypy 2 needs a package in Rust without a wheel.
  quiet "$venv/bin/python" -m pip install --prefer-binary --group build hypothesis jsonschema matplotlib ml_dtypes 'mypy<2' \
    numpy optree protobuf pytest pytest-run-parallel pytest-timeout pytest-xdist rich scikit-learn threadpoolctl
  echo "$want" >"$venv/stamp"
fi
export PATH=$venv/bin:$PATH VIRTUAL_ENV=$venv
quiet nice python -m pip install --no-build-isolation --no-deps -Cbuild-dir="$tree" -Ccmake.build-type=Debug \
  -Ccmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0 -e .

export PYTHON_GIL=0 # also where a package that a test imports would turn it on
# Left out are tests that need a newer matplotlib (charts of two notebooks) or ml_dtypes than there are wheels for 3.13t.
python -m pytest ${FOLDERS-tests/python} "$@" --deselect=tests/python/array/test_array_text.py::test_numbers_have_formats \
  --deselect='tests/python/package/test_notebooks.py::test_outputs_are_what_runs[plan_7'
parallel=${PARALLEL_FOLDERS-tests/python/array tests/python/array_ops tests/python/sharding tests/python/spmd tests/python/tree}
[ -z "$parallel" ] || python -m pytest $parallel --parallel-threads=4 "$@" \
  --deselect=tests/python/array/test_array_text.py::test_numbers_have_formats
