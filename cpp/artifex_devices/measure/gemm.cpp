// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/gemm.h"

#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/measure/gemm_variant.h"

namespace artifex_devices {
namespace {

template <class T>
void checked_gemm(Isa isa, const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n) {
  if (!is_supported(isa)) isa_from_name(to_string(isa), "gemm: isa");  // throws
  if (m < 0 || k < 0 || n < 0) {
    throw_error("gemm: the sizes are m={}, k={}, n={}; expected none below 0; give the matrices' shapes", m, k, n);
  }
  ARTIFEX_VARIANT(GemmFunction<T>, isa, gemm)(a, b, c, m, k, n);
}

}  // namespace

void prepare_gemm(Isa isa) {
  constexpr int64_t kSide = 32;  // too large for Eigen's product without blocks
  const std::vector<float> ones(kSide * kSide, 1.0F);
  std::vector<float> product(ones.size());
  gemm(isa, ones.data(), ones.data(), product.data(), kSide, kSide, kSide);
}

void gemm(Isa isa, const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  checked_gemm(isa, a, b, c, m, k, n);
}

void gemm(Isa isa, const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n) {
  checked_gemm(isa, a, b, c, m, k, n);
}

}  // namespace artifex_devices
