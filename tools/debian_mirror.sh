#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/debian_mirror.sh: the address of the package mirror that this machine's apt takes Debian's packages from.
set -euo pipefail
. /etc/os-release
suite=${VERSION_CODENAME:?not a Debian release}
mirrors=$(apt-get --print-uris update | sed -n "s|^'\(.*\)/dists/$suite/InRelease'.*|\1|p")
echo "${mirrors%%$'\n'*}" | grep . || { echo "no apt source of this machine has the suite $suite" >&2; exit 1; }
