#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds an sdist and, from it, one self-contained manylinux_2_28 wheel for each Python 3.11 to 3.14 found here, into dist/.
#   PYTHONS="python3.11 python3.12" tools/make_wheels.sh    chooses the interpreters
#   TARGET=aarch64 tools/make_wheels.sh                     adds a cross-compiled wheel for the Python of Debian's packages
# Then tests each: installed with its dependencies into an empty environment, it runs the README's code without a
# compiler or system hwloc, and then a job of two processes. hwloc comes from Debian's source package, static and
# without plug-ins, so that a user's environment cannot load code into it; fmt's one source file is compiled with ours.
# Without a machine of the architecture, TARGET's C++ tests and the README's code run in Debian's packages under qemu.
# The libraries are linked for an older C library than this machine's (docs/decisions/0041-wheels-for-glibc-2-28.md).
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_CONSTRAINT # a wheel is tested with the versions that its users get
root=$PWD
machine=${TARGET:-$(uname -m)}
work=$root/build/wheel${TARGET:+-$TARGET}
say() { printf 'wheel: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
case ${TARGET:-} in "" | aarch64) ;; *) die "TARGET is '$TARGET'; expected aarch64, or nothing for this machine's architecture" ;; esac
mkdir -p "$work" dist

# --- what the wheels are linked to
logged() { # logged <name> <command>...: shows the output only when the command fails
  local log=$work/$1.log; shift
  "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; die "failed: $*"; }
}
hwloc=$work/hwloc fmt=$work/fmt older=$work/older triple=$machine-linux-gnu cross=()
if [ -n "${TARGET:-}" ]; then
  missing=()
  command -v "$triple-g++" >/dev/null || missing+=("g++-$triple")
  command -v "qemu-$machine-static" >/dev/null || missing+=(qemu-user-static)
  if ((${#missing[@]})); then
    [ "$(id -u)" = 0 ] || die "packages are missing; install them: apt-get install ${missing[*]}"
    logged packages env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
  fi
  PYTHONS=/usr/bin/python3 # of the same version as that of the packages
  version=$("$PYTHONS" -c 'import sys; print("{}.{}".format(*sys.version_info))')
  suffix=.cpython-${version/./}-$triple.so
  sysroot=$work/sysroot
  emulated=("qemu-$machine-static" -L "$sysroot")
  [ -e "$sysroot/usr/bin/python$version" ] ||
    logged sysroot tools/debian_sysroot.sh arm64 "$sysroot" python3-dev libeigen3-dev libfmt-dev libgtest-dev
  cross=(
    "env._PYTHON_HOST_PLATFORM=linux-$machine" "env.SETUPTOOLS_EXT_SUFFIX=$suffix" # what scikit-build-core names files by
    build.targets=all
    cmake.define.ARTIFEX_BUILD_TESTS=ON
    cmake.define.CMAKE_SYSTEM_NAME=Linux
    "cmake.define.CMAKE_SYSTEM_PROCESSOR=$machine"
    "cmake.define.CMAKE_CXX_COMPILER=$triple-g++"
    "cmake.define.CMAKE_FIND_ROOT_PATH=$sysroot"
    cmake.define.CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER
    "cmake.define.Python_INCLUDE_DIR=$sysroot/usr/include/python$version"
    "cmake.define.PYTHON_MODULE_EXTENSION=$suffix" cmake.define.PYTHON_MODULE_DEBUG_POSTFIX=
  )
fi
logged hwloc tools/build_hwloc.sh "$hwloc" ${TARGET:+--host="$triple"}
say "hwloc $(sed -n 's/^Version: //p' "$hwloc/lib/pkgconfig/hwloc.pc"), static, $(stat -c %s "$hwloc/lib/libhwloc.a") bytes"
[ -e "$fmt/src/format.cc" ] || logged fmt tools/debian_source.sh fmtlib "$fmt"
logged older env ${TARGET:+CXX="$triple-g++"} python tools/older_libraries.py "$older"
settings=(
  "cmake.define.ARTIFEX_HWLOC_ROOT=$hwloc"
  "cmake.define.ARTIFEX_FMT_SOURCE=$fmt/src/format.cc"
  "cmake.define.CMAKE_SHARED_LINKER_FLAGS=-L$older"
  "cmake.define.CMAKE_MODULE_LINKER_FLAGS=-L$older"
  "${cross[@]}"
)

# --- the sdist, from which every wheel is built
rm -rf "$work/src" "$work/raw" "$work/sdist"
mkdir -p "$work/src" "$work/raw"
logged sdist python -m build --sdist --outdir "$work/sdist" .
sdist=$(echo "$work"/sdist/*.tar.gz)
tar -xzmf "$sdist" -C "$work/src" --strip-components=1 # -m: all files of an sdist have one old date, which hides changes
say "$(basename "$sdist"), $(stat -c %s "$sdist") bytes"
if [ -n "${TARGET:-}" ]; then rm -f dist/*_"$machine".whl; else rm -rf dist/* && cp "$sdist" dist; fi

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
for each in 3.{11..14} 3.14t; do
  [ -n "${PYTHONS:-}${pythons[cp${each/./}]:-}" ] || say "no Python $each here, so no wheel for it; tools/build_python.sh $each builds one"
done

# auditwheel offers the platforms of the architecture that it runs on.
audit() { python -c "import platform; platform.machine = lambda: '$machine'; from auditwheel.main import main; exit(main())" "$@"; }

# Runs a command where compilers and the system's hwloc and fmt are empty files, when the kernel lets us.
hidden() {
  local hide='for file in /usr/bin/{cc,c++,gcc,g++,clang,ld,as,make,cmake,ninja} /usr/lib/*/lib{hwloc,fmt}.so*; do
    [ -f "$file" ] && mount --bind /dev/null "$(realpath "$file")" 2>/dev/null; done; exec "$@"'
  if unshare -rm true 2>/dev/null; then unshare -rm bash -c "$hide" hidden "$@"; else "$@"; fi
}
unshare -rm true 2>/dev/null || say "no mount namespaces here: nothing can be hidden, the proof rests on the names of needed libraries"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp README.md tools/run_page.py "$scratch"

for tag in $(printf '%s\n' "${!pythons[@]}" | sort -V); do
  python=${pythons[$tag]}
  say "$tag: building with $python"
  rm -rf "$scratch/build" "$scratch/venv" "$work/raw"/*
  "$python" -m venv "$scratch/build"
  # CI=1: scikit-build-core waits 20 instead of 5 seconds for `cmake --version`, which a busy machine needs.
  CI=1 logged "$tag" "$scratch/build/bin/python" -m pip wheel --no-deps --wheel-dir "$work/raw" "${settings[@]/#/--config-settings=}" \
    --config-settings=build-dir="$work/$tag" "$work/src"
  logged "$tag-audit" audit repair --plat "manylinux_2_28_$machine" --wheel-dir dist "$work/raw"/*.whl
  wheel=$(ls dist/*-"$tag"-manylinux*_"$machine".whl)
  (($(stat -c %s "$wheel") < 7000000)) || die "$wheel is larger than 7 MB"
  unpacked=$("$python" -c 'import sys, zipfile
print(sum(file.file_size for file in zipfile.ZipFile(sys.argv[1]).infolist()))' "$wheel")
  ((unpacked < 10950000)) || die "$wheel unpacks to $unpacked bytes; with its dependencies it must stay below 15 MB"

  if [ -n "${TARGET:-}" ]; then
    site=$work/site
    rm -rf "$site"
    mapfile -t platforms < <(printf -- "--platform=manylinux_2_%d_$machine\n" {17..36}) # 36: glibc of Debian 12
    logged install python -m pip install --only-binary=:all: --python-version "$version" --implementation cp \
      "${platforms[@]}" --target "$site" "$wheel"
    run=(env -i PATH="$PATH" HOME="$scratch" PYTHONPATH="$site" "${emulated[@]}" "$sysroot/usr/bin/python$version")
  else
    "$python" -m venv "$scratch/venv"
    "$scratch/venv/bin/python" -m pip install -qq "$wheel" </dev/null
    site=$("$scratch/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    run=(hidden env -i PATH="$scratch/venv/bin" HOME="$scratch" python)
  fi
  binaries=("$site"/artifex_devices/_{core,planner}*.so "$site"/artifex_devices/lib/libartifex_devices.so)
  outside=$(readelf -d "${binaries[@]}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
    grep -vE '^(libartifex_devices|lib(c|m|pthread|dl|rt|gcc_s|stdc\+\+)|ld-linux.*)\.so' || true)
  [ -z "$outside" ] || die "$tag: the extension needs libraries from outside the wheel: $outside"
  # auditwheel sees the versions of names only: a name without one would be that of this machine's newer C library.
  unversioned=$(comm -23 <(nm -D --undefined-only "${binaries[@]}" | awk '$1 == "U" && $2 !~ /@|^_?Py/ { print $2 }' | sort -u) \
    <(nm -D --defined-only "${binaries[-1]}" | awk '{ print $3 }' | sort -u))
  [ -z "$unversioned" ] || die "$tag: names that glibc 2.28 and its libstdc++ lack; add them to tools/older_glibc.c: $unversioned"
  python tools/check_hardening.py "${binaries[@]}" || die "$tag: the extension is not hardened"
  (cd "$scratch" && "${run[@]}" -W error run_page.py README.md) \
    >"$scratch/output" 2>&1 || { cat "$scratch/output" >&2; die "$tag: the README failed"; }
  say "$tag: $(basename "$wheel"), $(stat -c %s "$wheel") bytes, $(head -n 1 "$scratch/output")"
  [ -z "${TARGET:-}" ] || continue
  # Jobs of several processes import the wheel too. `make test-processes` has the other tests, of the checkout.
  "$scratch/venv/bin/python" -m pip install -qq "$wheel[mpi]" 'pytest>=8' 'pytest-timeout>=2.3' </dev/null
  env -u PYTHONPATH "$scratch/venv/bin/python" -m pytest -q -p no:cacheprovider tests/distributed/test_runner.py \
    >"$scratch/output" 2>&1 </dev/null || { cat "$scratch/output" >&2; die "$tag: a job of several processes failed"; }
done

# --- the C++ tests of another architecture
if [ -n "${TARGET:-}" ]; then
  # qemu's user mode ignores limits of the address space and advice about pages, and cannot start a test's program again.
  # faults_test repeats each operation with a fault in each of its calls, which takes too long under qemu, for shared code.
  left_out=(
    "WorkerPoolLimits.*" "WorkerPoolExit.*" LiveMachine.LimitsMemoryToTheAddressSpace MemoryKindsTest.MapsThePagesOfEachKind
    ArenaTest.DropsCachesBeforeAnAllocationFails ArenaLimitsTest.OffersCachedBlocksBeyondAnEighthToTheSystem
  )
  say "C++ tests, without faults_test ${left_out[*]}"
  filter=$(IFS=:; echo "-${left_out[*]}")
  for test in $(find "$work/$tag" -name '*_test' ! -name faults_test -type f -executable | sort); do
    name=$(basename "$test") begin=$SECONDS
    logged "$name" "${emulated[@]}" "$test" --gtest_brief=1 --gtest_filter="$filter"
    say "$name: $(sed -n 's/^\[  PASSED  \] //p' "$work/$name.log") $((SECONDS - begin)) s"
  done
  exit
fi

# --- the C++ side of the last wheel
say "a C++ program against the wheel's library"
consumer=$scratch/consumer
cmake -S tests/cpp/consumer -B "$consumer" -G Ninja \
  -Dartifex_devices_DIR="$("$scratch/venv/bin/python" -m artifex_devices --cmake-dir)" >"$scratch/log" 2>&1 &&
  cmake --build "$consumer" >>"$scratch/log" 2>&1 && "$consumer/consumer" || { cat "$scratch/log" >&2; die "consumer failed"; }
ls -l dist
