// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// One product, compiled once for each instruction set, in files with their own compile options (CMakeLists.txt). Each
// file renames Eigen's namespace. Otherwise the linker could use an inline function compiled for AVX-512 in the
// baseline. They include only Eigen and this header; tools/check_isa_symbols.py checks that they export no other code.
namespace artifex_devices {

/// c = a b for row-major a (m x k), b (k x n) and c (m x n), all packed; on the calling thread.
/// Throws std::bad_alloc.
template <class T>
using GemmFunction = void (*)(const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n);

#define ARTIFEX_DECLARE_GEMM(isa)                                                             \
  void gemm_##isa(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n); \
  void gemm_##isa(const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n)

ARTIFEX_DECLARE_GEMM(baseline);
#if defined(__x86_64__)
ARTIFEX_DECLARE_GEMM(avx2);
ARTIFEX_DECLARE_GEMM(avx512);
#endif
#undef ARTIFEX_DECLARE_GEMM

}  // namespace artifex_devices
