// SPDX-License-Identifier: Apache-2.0
// AVX-512 F, DQ, BW and VL.
#if defined(__x86_64__)
#define ARTIFEX_COMBINE_LOOPS combine_loops_avx512
#include "artifex_devices/collective/combine_template.h"
#endif
