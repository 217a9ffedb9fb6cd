// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_devices/base/isa.h"

namespace artifex_devices {

/// Makes Eigen look up the sizes of the caches, which it does once, behind a guard. Call it under Python's lock before
/// the product runs without it: a fork in between would leave the guard closed in the child.
void prepare_gemm(Isa isa);

/// c = a b for row-major a (m x k), b (k x n), c (m x n), all packed, c apart from a and b; by Eigen's product for
/// `isa`, on the calling thread. Throws InvalidArgument for a set that this processor does not run or a negative size.
void gemm(Isa isa, const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n);
void gemm(Isa isa, const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n);

}  // namespace artifex_devices
