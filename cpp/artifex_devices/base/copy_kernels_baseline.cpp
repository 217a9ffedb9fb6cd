// SPDX-License-Identifier: Apache-2.0
// The instruction set of every processor of the architecture: SSE2 on x86-64, NEON on aarch64.
#define ARTIFEX_COPY_KERNELS copy_kernels_baseline
#include "artifex_devices/base/copy_kernels_template.h"
