#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/build_hwloc.sh <prefix>: hwloc from Debian's source package, as one static, position-independent library without
# plug-ins or GPU back ends, so that nothing in a user's environment can be loaded through it. Needs no root.
set -euo pipefail
prefix=$(realpath -m "$1")
[ ! -e "$prefix/COPYING" ] || exit 0
. /etc/os-release
work=$prefix.build
rm -rf "$prefix" "$work"
mkdir -p "$work"/{lists/partial,cache/archives/partial,source}
cd "$work"
# A source list of our own: the machine's configuration stays as it is. apt checks the signatures.
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "http://deb.debian.org/debian ${VERSION_CODENAME:?not a Debian release} main" >sources.list
apt() {
  apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User= "$@"
}
apt update
apt source --download-only hwloc
python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall("source")' hwloc_*.orig.tar.*
cd source/*/
./configure --prefix="$prefix" --libdir="$prefix/lib" CFLAGS="-O2 -fstack-protector-strong" --with-pic \
  --enable-static --disable-shared --disable-plugins --disable-pci --disable-libudev --disable-libxml2 \
  --disable-cairo --disable-opencl --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl \
  --disable-doxygen --disable-readme
make -j"$(nproc)" -C include install
make -j"$(nproc)" -C hwloc install
install -D -m 644 hwloc.pc "$prefix/lib/pkgconfig/hwloc.pc"
install -m 644 COPYING "$prefix/COPYING" # last: says that all is there
rm -rf "$work"
