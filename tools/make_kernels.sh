#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernels for GPUs to PTX, which NVIDIA's driver compiles for the GPU that it finds: run it after a change of
# strided_kernel.cu or strided_kernel.h, and commit its result. It needs clang 19, which `make fuzz` installs, or
# CLANG=clang++ of another version. PTX 7.0 and sm_50 are read by every driver since CUDA 11.0 and run on every GPU since 2014.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=cpp/artifex_devices/device/cuda
ptx=$(mktemp)
trap 'rm -f "$ptx"' EXIT
"${CLANG:-clang++-19}" -x cuda --cuda-device-only --cuda-gpu-arch=sm_50 --cuda-feature=+ptx70 -nocudainc \
  -nocudalib -Wno-unknown-cuda-version -std=c++20 -O3 -S -Icpp "$folder/strided_kernel.cu" -o "$ptx"
{
  printf '// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n'
  printf '// strided_kernel.cu, compiled by tools/make_kernels.sh.\nnamespace artifex_devices::cuda {\n\n'
  printf 'inline constexpr char kStridedKernelPtx[] = R"ptx('
  sed -e 's|//.*||' -e 's/[[:space:]]*$//' -e 's/^\t*//' -e '/^$/d' "$ptx"
  printf ')ptx";\n\n}  // namespace artifex_devices::cuda\n'
} >"$folder/strided_kernel_ptx.h"
wc -c "$folder/strided_kernel_ptx.h"
