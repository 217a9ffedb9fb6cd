#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/debian_sysroot.sh <architecture> <folder> <package>...: these packages of Debian for another architecture and all that
# they need, unpacked in that folder. Nothing is installed, and root is not required. apt checks the signatures.
set -euo pipefail
architecture=$1
folder=$(realpath -m "$2")
mirror=$("$(dirname "$0")/debian_mirror.sh")
. /etc/os-release
work=$folder.apt
rm -rf "$folder" "$work"
mkdir -p "$work"/root/usr/{bin,lib,sbin} "$work"/{lists/partial,cache/archives/partial}
ln -s usr/{bin,lib,sbin} "$work/root"
signed="signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
echo "deb [$signed arch=$architecture] $mirror $VERSION_CODENAME main" >"$work/sources.list"
apt() {
  apt-get -qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o Dir::State::status=/dev/null \
    -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/lists" \
    -o "Dir::Cache=$work/cache" -o APT::Sandbox::User= -o Debug::NoLocking=1 "$@"
}
apt update
apt install --download-only --no-install-recommends -y "${@:3}"
for package in "$work"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$work/root"
done
mv "$work/root" "$folder" # last: says that all is there
rm -rf "$work"
