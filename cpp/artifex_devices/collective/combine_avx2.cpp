// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define ARTIFEX_COMBINE_LOOPS combine_loops_avx2
#include "artifex_devices/collective/combine_template.h"
#endif
