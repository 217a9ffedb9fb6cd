// SPDX-License-Identifier: Apache-2.0
// The instruction set of every processor of the architecture: SSE2 on x86-64, NEON on aarch64.
#define Eigen artifex_eigen_baseline
#include <Eigen/Core>

#include "artifex_devices/measure/gemm_variant.h"

namespace artifex_devices {

#define ARTIFEX_DEFINE_GEMM(T)                                                                                     \
  void gemm_baseline(const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n) {                              \
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;                              \
    Eigen::Map<Matrix>(c, m, n).noalias() = Eigen::Map<const Matrix>(a, m, k) * Eigen::Map<const Matrix>(b, k, n); \
  }
ARTIFEX_DEFINE_GEMM(float)
ARTIFEX_DEFINE_GEMM(double)

}  // namespace artifex_devices
