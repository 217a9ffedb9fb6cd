#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/build_hwloc.sh <prefix> [<option of configure>...]: hwloc from Debian's source package, as one static,
# position-independent library without plug-ins or GPU back ends, so that nothing in a user's environment can be loaded
# through it. Root is not required.
set -euo pipefail
prefix=$(realpath -m "$1")
[ ! -e "$prefix/COPYING" ] || exit 0
source=$prefix.source
rm -rf "$prefix"
"$(dirname "$0")/debian_source.sh" hwloc "$source"
cd "$source"
./configure --prefix="$prefix" --libdir="$prefix/lib" CFLAGS="-Os -fstack-protector-strong" --with-pic \
  --enable-static --disable-shared --disable-plugins --disable-pci --disable-libudev --disable-libxml2 \
  --disable-cairo --disable-opencl --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl \
  --disable-doxygen --disable-readme "${@:2}"
make -j"$(nproc)" -C include install
make -j"$(nproc)" -C hwloc install
install -D -m 644 hwloc.pc "$prefix/lib/pkgconfig/hwloc.pc"
install -m 644 COPYING "$prefix/COPYING" # last: says that all is there
rm -rf "$source"
