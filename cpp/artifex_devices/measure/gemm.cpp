// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/gemm.h"

#include <algorithm>
#include <array>
#include <string>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/measure/gemm_variant.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, 3> kInstructionSets = {"baseline", "avx2", "avx512"};

bool runs_here(Isa isa) noexcept {
  if (isa == Isa::kBaseline) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == Isa::kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  }
#endif
  return false;
}

template <class T>
GemmFunction<T> function_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return gemm_avx2;
  if (isa == Isa::kAvx512) return gemm_avx512;
#endif
  return gemm_baseline;
}

std::string names_here() {
  std::string text;
  for (const Isa isa : supported_isas()) text += fmt::format("{}{:?}", text.empty() ? "" : ", ", to_string(isa));
  return text;
}

template <class T>
void checked_gemm(Isa isa, const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n) {
  if (!runs_here(isa)) {
    throw_error("gemm: this processor does not run {:?}; expected one of {}; choose one of them", to_string(isa),
                names_here());
  }
  if (m < 0 || k < 0 || n < 0) {
    throw_error("gemm: the sizes are m={}, k={}, n={}; expected none below 0; give the matrices' shapes", m, k, n);
  }
  function_of<T>(isa)(a, b, c, m, k, n);
}

}  // namespace

std::string_view to_string(Isa isa) noexcept {
  const auto index = static_cast<size_t>(isa);
  return index < kInstructionSets.size() ? kInstructionSets[index] : std::string_view("unknown");
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (runs_here(isa)) found.push_back(isa);
  }
  return found;
}

Isa isa_from_name(std::string_view name, std::string_view operation) {
  for (const Isa isa : supported_isas()) {
    if (to_string(isa) == name) return isa;
  }
  const bool known = std::ranges::find(kInstructionSets, name) != kInstructionSets.end();
  throw_error("{}: isa is {:?}, which {}; expected one of {}; leave it out for the fastest", operation, name,
              known ? "this processor does not run" : "is no instruction set known here", names_here());
}

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
