#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/debian_source.sh <package> <folder> [<suite>]: the upstream sources of Debian's source package, in that folder,
# from this machine's suite or another. They come from the mirror that this machine's own sources name. Root is not
# required: a separate source list leaves the machine's configuration unchanged. apt checks the signatures.
set -euo pipefail
package=$1
folder=$(realpath -m "$2")
mirror=$("$(dirname "$0")/debian_mirror.sh")
. /etc/os-release
suite=${3:-$VERSION_CODENAME}
work=$folder.apt
rm -rf "$folder" "$work"
mkdir -p "$folder" "$work"/{lists/partial,cache/archives/partial}
cd "$work"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >sources.list
apt() {
  apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User= "$@"
}
apt update
apt source --download-only "$package"
rm -f ./*.asc # signatures by the authors, beside the archives
tar -xf "$package"_*.orig.tar.* -C "$folder" --strip-components=1
rm -rf "$work"
