// SPDX-License-Identifier: Apache-2.0
// AVX2.
#if defined(__x86_64__)
#define ARTIFEX_COPY_KERNELS copy_kernels_avx2
#include "artifex_devices/base/copy_kernels_template.h"
#endif
