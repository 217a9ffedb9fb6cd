// SPDX-License-Identifier: Apache-2.0
// AVX-512 F, DQ, BW and VL.
#if defined(__x86_64__)
#define ARTIFEX_COPY_KERNELS copy_kernels_avx512
#include "artifex_devices/base/copy_kernels_template.h"
#endif
