#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates .venv-oracle: real JAX, safetensors and everything in .venv, our package included. JAX stays out of .venv so that the
# other tests cannot depend on it.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
want=$(grep -E '^oracle = ' pyproject.toml; cat .venv/pyvenv.cfg; echo "$site")
[ "$(cat .venv-oracle/stamp 2>/dev/null)" != "$want" ] || exit 0
echo "setup: making .venv-oracle with JAX"
rm -rf .venv-oracle
.venv/bin/python -m venv .venv-oracle
mine=$(.venv-oracle/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# addsitedir and not a bare path: the editable install of .venv is itself a .pth file.
echo "import site; site.addsitedir('$site')" >"$mine/venv.pth"
packages=$(.venv/bin/python -c '
import re, sys
text = open("pyproject.toml", encoding="utf-8").read()
extra = re.search(r"^oracle = (.*)", text, re.M)[1]
print(*re.findall(r"\"([\w-]+[=>][^;\"]*)", extra))')
.venv-oracle/bin/python -m pip install -qq $packages
echo "$want" >.venv-oracle/stamp
