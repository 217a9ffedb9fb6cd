#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares a checkout on Debian 12 or newer: missing system packages, the environment .venv with the tools of
# pyproject.toml, and the package itself, editable. A second run only rebuilds changed files.
#   tools/setup.sh --run                only what the package and its examples need, without the tools for tests
#   PYTHON=python3.12 tools/setup.sh    chooses the interpreter of a new .venv
# The build tree is build/python, a link to the one of this Python version.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_CONSTRAINT=tools/constraints.txt # relative: pip splits the variable at spaces
log=build/setup.log
mkdir -p build
case "${1:-}" in
  "") level=develop ;;
  --run) level=run ;;
  *) echo "setup: unknown argument $1; expected --run or nothing" >&2; exit 1 ;;
esac

say() { printf 'setup: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
quiet() { # runs a command, shows its output only when it fails
  "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; die "failed: $*"; }
}
with_progress() { # as quiet, and shows the progress of ninja: on one line of a terminal, else every tenth
  "$@" </dev/null 2>&1 | {
    tenth=0 on_line=""
    while IFS= read -r line; do
      printf '%s\n' "$line"
      [[ $line =~ \[([0-9]+)/([0-9]+)\] ]] || continue
      built=${BASH_REMATCH[1]} steps=${BASH_REMATCH[2]}
      if [ -t 3 ]; then
        printf '\rsetup: built %s of %s ' "$built" "$steps" >&3
        on_line=yes
      elif ((10 * built / steps > tenth)); then
        tenth=$((10 * built / steps))
        printf 'setup: built %s of %s\n' "$built" "$steps" >&3
      fi
    done
    [ -z "$on_line" ] || printf '\n' >&3
  } 3>&1 >"$log" || { cat "$log" >&2; die "failed: $*"; }
}

# --- system packages: only those that are not provided otherwise
missing=()
need() { # need <package> <test>...
  local package=$1; shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
header() { [ -e "/usr/include/$1" ] || [ -e "/usr/include/$(uname -m)-linux-gnu/$1" ] || [ -e "/usr/local/include/$1" ]; }
need g++ command -v g++
need pkg-config command -v pkg-config
need ccache command -v ccache
need libhwloc-dev pkg-config --exists hwloc
need libfmt-dev header fmt/format.h
need libeigen3-dev header eigen3/Eigen/Core
if [ $level = develop ]; then
  need git command -v git
  need util-linux command -v setarch
  need libgtest-dev header gtest/gtest.h
fi

# --- an interpreter: 3.11 to 3.14 with venv and headers; python3 first, then the newest
complete='
import ensurepip, os, sys, sysconfig, venv
assert (3, 11) <= sys.version_info[:2] <= (3, 14) and sys.implementation.name == "cpython"
assert os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
print(os.path.realpath(sys.executable))'
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3}; do
    "$candidate" -c "$complete" 2>/dev/null && return 0
  done
  return 1
}
if [ ! -x .venv/bin/python ] && ! find_python >/dev/null; then
  [ -z "${PYTHON:-}" ] || die "PYTHON=$PYTHON is not a Python 3.11 to 3.14 with venv and Python.h"
  missing+=(python3 python3-venv python3-dev)
fi

if ((${#missing[@]})); then
  root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  command -v apt-get >/dev/null || die "no apt-get here; install what Debian calls: ${missing[*]}"
  say "apt-get install ${missing[*]}"
  install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}")
  "${install[@]}" >"$log" 2>&1 </dev/null || { # the package lists may be old or absent
    quiet "${root[@]}" apt-get update
    quiet "${install[@]}"
  }
fi

# --- .venv, once for each state of its inputs
venv=$PWD/.venv
# (An editable install knows where each package was when it was installed.)
want=$(cat pyproject.toml tools/setup.sh tools/constraints.txt <(echo "$PWD"; find python -name __init__.py | sort) | sha256sum | cut -d' ' -f1)
if [ ! -x .venv/bin/python ] || ! grep -qsF "$venv" .venv/bin/pip; then # none yet, broken, or moved here
  python=$(find_python) || die "no Python 3.11 to 3.14 with venv and Python.h found; set PYTHON="
  say "making .venv with $("$python" -V), $python"
  rm -rf .venv build/python-* # the trees contain paths of the old environment
  quiet "$python" -m venv .venv
fi
export PATH=$venv/bin:$PATH VIRTUAL_ENV=$venv
tag=$(python -c 'import sys; print(f"cp{sys.version_info[0]}{sys.version_info[1]}")')
tree=build/python-$tag

ln -sfn "python-$tag" build/python

if [ "$(cat .venv/stamp 2>/dev/null)" != "$want" ]; then
  rm -f .venv/stamp-develop
  say "installing what the build and the examples need into .venv"
  quiet python -m pip install --upgrade 'pip>=25.1'
  quiet python -m pip install --group build
  say "building the package"
  with_progress python -m pip install -v --no-build-isolation -Cbuild-dir="$tree" -e '.[examples]'
  echo "$want" >.venv/stamp
else
  # Updates what pip built. CMake copies only changed files.
  before=$(stat -c %Y "$tree"/cpp/bindings/_core*.so 2>/dev/null || true)
  with_progress cmake --build "$tree" --target _core _planner artifex_devices
  site=$(python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  quiet cmake --install "$tree" --prefix "$site/artifex_devices" --strip
  [ "$before" = "$(stat -c %Y "$tree"/cpp/bindings/_core*.so)" ] || say "rebuilt the extension"
fi
if [ $level = develop ] && [ "$(cat .venv/stamp-develop 2>/dev/null)" != "$want" ]; then
  say "installing the tools for tests and checks into .venv"
  quiet python -m pip install --group dev 'artifex_devices[test,mpi]'
  quiet cmake -S . -B "$tree" -DARTIFEX_BUILD_TESTS=ON # the C++ tests are linked to the objects that users run
  echo "$want" >.venv/stamp-develop
fi
