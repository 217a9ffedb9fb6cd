#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds an sdist and, from it, one self-contained manylinux_2_28 wheel for each Python 3.11 to 3.14 found here, into dist/.
#   PYTHONS="python3.11 python3.12" tools/make_wheels.sh    chooses the interpreters
# Then tests each: installed with its dependencies into an empty environment, it runs the README's code without a
# compiler or system hwloc, and then a job of two processes. hwloc comes from Debian's source package, static and
# without plug-ins, so that a user's environment cannot load code into it; fmt's one source file is compiled with ours.
# The libraries are linked for an older C library than this machine's (docs/decisions/0041-wheels-for-glibc-2-28.md).
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_CONSTRAINT # a wheel is tested with the versions that its users get
root=$PWD
work=$root/build/wheel
say() { printf 'wheel: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
mkdir -p "$work" dist

# --- what the wheels are linked to
logged() { # logged <name> <command>...: shows the output only when the command fails
  local log=$work/$1.log; shift
  "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; die "failed: $*"; }
}
hwloc=$work/hwloc fmt=$work/fmt older=$work/older
logged hwloc tools/build_hwloc.sh "$hwloc"
say "hwloc $(sed -n 's/^Version: //p' "$hwloc/lib/pkgconfig/hwloc.pc"), static, $(stat -c %s "$hwloc/lib/libhwloc.a") bytes"
[ -e "$fmt/src/format.cc" ] || logged fmt tools/debian_source.sh fmtlib "$fmt"
logged older python tools/older_libraries.py "$older"
settings=(
  "--config-settings=cmake.define.ARTIFEX_HWLOC_ROOT=$hwloc"
  "--config-settings=cmake.define.ARTIFEX_FMT_SOURCE=$fmt/src/format.cc"
  "--config-settings=cmake.define.CMAKE_SHARED_LINKER_FLAGS=-L$older"
  "--config-settings=cmake.define.CMAKE_MODULE_LINKER_FLAGS=-L$older"
)

# --- the sdist, from which every wheel is built
rm -rf "$work/src" "$work/raw" dist/*
mkdir -p "$work/src" "$work/raw"
logged sdist python -m build --sdist --outdir dist .
tar -xzmf dist/*.tar.gz -C "$work/src" --strip-components=1 # -m: all files of an sdist have one old date, which hides changes
say "$(du -h dist/*.tar.gz)"

# --- the wheels
complete='
import ensurepip, os, sys, sysconfig, venv
assert (3, 11) <= sys.version_info[:2] <= (3, 14) and sys.implementation.name == "cpython"
assert os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
threading = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(f"cp{sys.version_info[0]}{sys.version_info[1]}{threading}", os.path.realpath(sys.executable))'
declare -A pythons=()
candidates=(${PYTHONS:-})
((${#candidates[@]})) || candidates=(python3 python3.{11..14} /usr/bin/python3 "$HOME"/.pyenv/versions/3.1[1-4]*/bin/python "$root"/build/pythons/*/bin/python3)
for candidate in "${candidates[@]}"; do
  if found=$(cd / && PATH=${PATH#"$root/.venv/bin:"} "$candidate" -c "$complete" 2>/dev/null); then
    : "${pythons[${found%% *}]:=${found#* }}"
  fi
done
((${#pythons[@]})) || die "no Python 3.11 to 3.14 with venv and Python.h found"
for version in 3.{11..14} 3.14t; do
  [ -n "${PYTHONS:-}${pythons[cp${version/./}]:-}" ] || say "no Python $version here, so no wheel for it; tools/build_python.sh $version builds one"
done

# Runs a command where compilers and the system's hwloc and fmt are empty files, when the kernel lets us.
hidden() {
  local hide='for file in /usr/bin/{cc,c++,gcc,g++,clang,ld,as,make,cmake,ninja} /usr/lib/*/lib{hwloc,fmt}.so*; do
    [ -f "$file" ] && mount --bind /dev/null "$(realpath "$file")" 2>/dev/null; done; exec "$@"'
  if unshare -rm true 2>/dev/null; then unshare -rm bash -c "$hide" hidden "$@"; else "$@"; fi
}
unshare -rm true 2>/dev/null || say "no mount namespaces here: nothing can be hidden, the proof rests on ldd"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp README.md tools/run_page.py "$scratch"

for tag in $(printf '%s\n' "${!pythons[@]}" | sort -V); do
  python=${pythons[$tag]}
  say "$tag: building with $python"
  rm -rf "$scratch/build" "$scratch/venv" "$work/raw"/*
  "$python" -m venv "$scratch/build"
  # CI=1: scikit-build-core waits 20 instead of 5 seconds for `cmake --version`, which a busy machine needs.
  CI=1 logged "$tag" "$scratch/build/bin/python" -m pip wheel --no-deps --wheel-dir "$work/raw" "${settings[@]}" \
    --config-settings=build-dir="$work/$tag" "$work/src"
  logged "$tag-audit" auditwheel repair --plat "manylinux_2_28_$(uname -m)" --wheel-dir dist "$work/raw"/*.whl
  wheel=$(ls dist/*-"$tag"-manylinux*.whl)
  (($(stat -c %s "$wheel") < 7000000)) || die "$wheel is larger than 7 MB"

  "$python" -m venv "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install -qq "$wheel" </dev/null
  site=$("$scratch/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  binaries=("$site"/artifex_devices/_{core,planner}*.so "$site"/artifex_devices/lib/libartifex_devices.so)
  outside=$(ldd "${binaries[@]}" | awk '$2 == "=>" { print $3 }' | grep -v "^$site" |
    grep -vE '/(libc|libm|libpthread|libdl|librt|libgcc_s|libstdc\+\+)\.so' || true)
  [ -z "$outside" ] || die "$tag: the extension needs libraries from outside the wheel: $outside"
  # auditwheel sees the versions of names only: a name without one would be that of this machine's newer C library.
  unversioned=$(comm -23 <(nm -D --undefined-only "${binaries[@]}" | awk '$1 == "U" && $2 !~ /@|^_?Py/ { print $2 }' | sort -u) \
    <(nm -D --defined-only "${binaries[-1]}" | awk '{ print $3 }' | sort -u))
  [ -z "$unversioned" ] || die "$tag: names that glibc 2.28 and its libstdc++ lack; add them to tools/older_glibc.c: $unversioned"
  python tools/check_hardening.py "${binaries[@]}" || die "$tag: the extension is not hardened"
  (cd "$scratch" && hidden env -i PATH="$scratch/venv/bin" HOME="$scratch" python -W error run_page.py README.md) \
    >"$scratch/output" 2>&1 || { cat "$scratch/output" >&2; die "$tag: the README failed"; }
  say "$tag: $(basename "$wheel"), $(stat -c %s "$wheel") bytes, $(head -n 1 "$scratch/output")"
  # Jobs of several processes import the wheel too. `make test-processes` has the other tests, of the checkout.
  "$scratch/venv/bin/python" -m pip install -qq "$wheel[mpi]" 'pytest>=8' 'pytest-timeout>=2.3' </dev/null
  env -u PYTHONPATH "$scratch/venv/bin/python" -m pytest -q -p no:cacheprovider tests/distributed/test_runner.py \
    >"$scratch/output" 2>&1 </dev/null || { cat "$scratch/output" >&2; die "$tag: a job of several processes failed"; }
done

# --- the C++ side of the last wheel
say "a C++ program against the wheel's library"
consumer=$scratch/consumer
cmake -S tests/cpp/consumer -B "$consumer" -G Ninja \
  -Dartifex_devices_DIR="$("$scratch/venv/bin/python" -m artifex_devices --cmake-dir)" >"$scratch/log" 2>&1 &&
  cmake --build "$consumer" >>"$scratch/log" 2>&1 && "$consumer/consumer" || { cat "$scratch/log" >&2; die "consumer failed"; }
ls -l dist
