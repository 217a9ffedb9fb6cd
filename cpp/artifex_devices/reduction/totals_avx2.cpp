// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define ARTIFEX_TOTAL_LOOPS total_loops_avx2
#include "artifex_devices/reduction/totals_template.h"
#endif
