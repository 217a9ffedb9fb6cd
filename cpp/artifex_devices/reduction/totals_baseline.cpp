// SPDX-License-Identifier: Apache-2.0
#define ARTIFEX_TOTAL_LOOPS total_loops_baseline
#include "artifex_devices/reduction/totals_template.h"
