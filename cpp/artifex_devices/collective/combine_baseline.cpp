// SPDX-License-Identifier: Apache-2.0
#define ARTIFEX_COMBINE_LOOPS combine_loops_baseline
#include "artifex_devices/collective/combine_template.h"
