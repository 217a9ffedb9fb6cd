// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_devices/base/isa.h"

namespace artifex_devices {

/// Makes Eigen read the sizes of the caches, which it does once, in a guarded static. Call it with the GIL held before
/// the first product without the GIL: a fork during the initialization would leave the guard locked in the child.
void prepare_gemm(Isa isa);

/// c = a b for row-major a (m x k), b (k x n), c (m x n), all packed, where c does not overlap a or b; uses Eigen's
/// product for `isa` on the calling thread. Throws InvalidArgument if this processor does not support `isa` or a size
/// is negative.
void gemm(Isa isa, const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n);
void gemm(Isa isa, const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n);

}  // namespace artifex_devices
