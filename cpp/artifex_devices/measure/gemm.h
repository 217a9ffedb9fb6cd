// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// Instruction sets that the product is compiled for. On aarch64 there is the baseline (NEON) only.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };

std::string_view to_string(Isa isa) noexcept;  // "baseline", "avx2", "avx512"

/// Those that this processor runs, least first; never empty.
std::vector<Isa> supported_isas();

/// Throws InvalidArgument naming those that this processor runs.
Isa isa_from_name(std::string_view name, std::string_view operation);

/// Makes Eigen look up the sizes of the caches, which it does once, behind a guard. Call it under Python's lock before
/// the product runs without it: a fork in between would leave the guard closed in the child.
void prepare_gemm(Isa isa);

/// c = a b for row-major a (m x k), b (k x n), c (m x n), all packed, c apart from a and b; by Eigen's product for
/// `isa`, on the calling thread. Throws InvalidArgument for a set that this processor does not run or a negative size.
void gemm(Isa isa, const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n);
void gemm(Isa isa, const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n);

}  // namespace artifex_devices
