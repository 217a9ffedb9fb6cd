#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernels for GPUs to PTX, a text that NVIDIA's driver compiles for the GPU that it finds.
#   tools/make_kernels.sh            writes strided_kernel_ptx.h: run it after a change of strided_kernel.cu or .h, and commit
#   tools/make_kernels.sh --check    status 1 if the committed file is not what the source compiles to
# It needs clang 19, which `make fuzz` installs. PTX 7.0 and sm_50 are read by every driver since CUDA 11.0, for every GPU
# since 2014.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=cpp/artifex_devices/device/cuda
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
clang++-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_50 --cuda-feature=+ptx70 -nocudainc -nocudalib \
  -Wno-unknown-cuda-version -std=c++20 -O3 -S -Icpp "$folder/strided_kernel.cu" -o "$scratch/ptx"
{
  printf '// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n'
  printf '// strided_kernel.cu, compiled by tools/make_kernels.sh.\nnamespace artifex_devices::cuda {\n\n'
  printf 'inline constexpr char kStridedKernelPtx[] = R"ptx('
  sed -e 's|//.*||' -e 's/[[:space:]]*$//' -e 's/^\t*//' -e '/^$/d' "$scratch/ptx"
  printf ')ptx";\n\n}  // namespace artifex_devices::cuda\n'
} >"$scratch/header"
if [ "${1:-}" = --check ]; then
  diff "$folder/strided_kernel_ptx.h" "$scratch/header" && exit 0
  echo "make_kernels: $folder/strided_kernel_ptx.h is not of this source; run tools/make_kernels.sh" >&2
  exit 1
fi
cp "$scratch/header" "$folder/strided_kernel_ptx.h"
