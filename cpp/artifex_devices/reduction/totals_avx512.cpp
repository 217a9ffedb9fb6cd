// SPDX-License-Identifier: Apache-2.0
// AVX-512 F, DQ, BW and VL.
#if defined(__x86_64__)
#define ARTIFEX_TOTAL_LOOPS total_loops_avx512
#include "artifex_devices/reduction/totals_template.h"
#endif
