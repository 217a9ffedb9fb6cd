// SPDX-License-Identifier: Apache-2.0
#define ARTIFEX_EXACT_KERNELS exact_kernels_baseline
#include "artifex_devices/reduction/exact_kernels_template.h"
