// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define ARTIFEX_EXACT_KERNELS exact_kernels_avx2
#include "artifex_devices/reduction/exact_kernels_template.h"
#endif
