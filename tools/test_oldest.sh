#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The README's code from a wheel of dist/ on a bare Debian 11, which has glibc 2.31, in build/debian11. As root; the first
# run takes a quarter of an hour, because it builds the interpreter: this machine's Python, from Debian's source package.
set -euo pipefail
cd "$(dirname "$0")/.."
debian=$PWD/build/debian11
python=$(/usr/bin/python3 -c 'import sys; print("{}.{}".format(*sys.version_info))')
say() { printf 'oldest: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
logged() { # logged <name> <command>...: shows the output only when the command fails
  local log=$PWD/build/oldest-$1.log; shift
  "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; die "failed: $*"; }
}
inside() { # a command in Debian 11; what is mounted there is gone when it ends
  unshare --mount bash -c 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; mount --rbind /sys "$0/sys"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$0" "$@"' "$debian" "$@"
}
[ "$(id -u)" = 0 ] || die "only root can install a Debian 11"
wheels=(dist/*-cp"${python/./}"-manylinux*_"$(uname -m)".whl)
[ -e "${wheels[0]}" ] || die "no wheel for Python $python in dist/; run make wheel"

if [ ! -e "$debian/opt/python/bin/python3" ]; then
  command -v debootstrap >/dev/null || logged debootstrap apt-get install -y --no-install-recommends debootstrap
  say "installing Debian 11"
  rm -rf "$debian"
  logged debian debootstrap --variant=minbase --include=gcc,libc6-dev,libffi-dev,make,zlib1g-dev \
    bullseye "$debian" "$(tools/debian_mirror.sh)"
  say "building Python $python there"
  logged source tools/debian_source.sh "python$python" "$debian/usr/src/python"
  logged python inside sh -c "cd /usr/src/python && ./configure --prefix=/opt/python --disable-test-modules CFLAGS=-O1 &&
    make -j$(nproc) && make install"
fi

say "the README's code, from ${wheels[0]}"
rm -rf "$debian/srv"
mkdir -p "$debian/srv/wheels"
mapfile -t platforms < <(printf -- "--platform=manylinux_2_%d_$(uname -m)\n" {17..31})
logged download python -m pip download --only-binary=:all: --python-version "$python" --implementation cp \
  "${platforms[@]}" --dest "$debian/srv/wheels" "${wheels[0]}"
cp README.md tools/run_page.py "$debian/srv"
logged install inside sh -c "/opt/python/bin/python3 -m venv /srv/venv &&
  /srv/venv/bin/python -m pip install --no-index --find-links /srv/wheels artifex_devices"
inside sh -c 'cd /srv && venv/bin/python -W error run_page.py README.md'
