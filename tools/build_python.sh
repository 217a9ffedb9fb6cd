#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/build_python.sh <version>: CPython, such as 3.14 or the free-threaded 3.14t, in build/pythons/<version>, from the
# source package of the oldest Debian suite whose mirror has it. Built once; a second call returns at once. Prints the
# path of the interpreter, or fails where there are no sources.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-}
[[ $version =~ ^3\.[0-9]+t?$ ]] || { echo "build_python: the version is '$version'; expected one such as 3.14 or 3.14t" >&2; exit 1; }
release=${version%t}
prefix=$PWD/build/pythons/$version
python=$prefix/bin/python$version
[ ! -e "$prefix/LICENSE" ] || { echo "$python"; exit 0; }
source=$prefix.source
log=$prefix.log
rm -rf "$prefix" "$source"
mkdir -p "${prefix%/*}"
say() { printf 'build_python: %s\n' "$*" >&2; }
quiet() { # runs a command, and shows its output only when it fails
  "$@" >"$log" 2>&1 </dev/null || { tail -n 40 "$log" >&2; say "failed: $*"; exit 1; }
}

missing=()
need() { [ -e "/usr/include/$2" ] || [ -e "/usr/include/$(uname -m)-linux-gnu/$2" ] || missing+=("$1"); }
need zlib1g-dev zlib.h
need libssl-dev openssl/ssl.h
need libffi-dev ffi.h
need libbz2-dev bzlib.h
if ((${#missing[@]})); then
  [ "$(id -u)" = 0 ] || { say "packages are missing; install them: apt-get install ${missing[*]}"; exit 1; }
  quiet env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
fi

for suite in bookworm trixie forky sid; do
  if tools/debian_source.sh "python$release" "$source" "$suite" >"$log" 2>&1 </dev/null; then break; fi
  rm -rf "$source" "$source.apt"
done
[ -e "$source/configure" ] || { say "no sources of Python $release in Debian's suites up to sid (see $log)"; exit 1; }
settings=("--prefix=$prefix" --disable-test-modules)
[ "$release" = "$version" ] || settings+=(--disable-gil)
say "building Python $version from the sources of $suite"
cd "$source"
OPT="-O2 -DNDEBUG" quiet ./configure "${settings[@]}"
quiet nice make -j2
quiet nice make install
install -m 644 LICENSE "$prefix/LICENSE" # last: says that all is there
rm -rf "$source" "$log"
echo "$python"
