// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

// Small whole numbers, so that every order of adding gives the same bits.
template <class T>
std::vector<T> numbers(int64_t count, int64_t seed) {
  std::vector<T> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>((static_cast<int64_t>(i) * 7 + seed) % 11 - 5);
  return out;
}

template <class T>
std::vector<T> naive(const std::vector<T>& a, const std::vector<T>& b, int64_t m, int64_t k, int64_t n) {
  std::vector<T> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        c[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
      }
    }
  }
  return c;
}

template <class T>
void expect_exact(Isa isa) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {33, 65, 17}, {256, 256, 256}, {1, 300, 2}, {130, 1, 70}}) {
    SCOPED_TRACE(::testing::Message() << to_string(isa) << " " << m << "x" << k << "x" << n);
    const auto a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 4);
    std::vector<T> c(static_cast<size_t>(m * n), T(99));
    gemm(isa, a.data(), b.data(), c.data(), m, k, n);
    EXPECT_TRUE(c == naive(a, b, m, k, n));
  }
}

TEST(Gemm, IsExactOnEveryInstructionSet) {
  ASSERT_FALSE(supported_isas().empty());
  EXPECT_EQ(supported_isas().front(), Isa::kBaseline);
  for (const Isa isa : supported_isas()) {
    expect_exact<float>(isa);
    expect_exact<double>(isa);
  }
}

TEST(Gemm, MultipliesEmptyMatrices) {
  std::vector<float> c(6, 9.0F);
  gemm(Isa::kBaseline, nullptr, nullptr, c.data(), 0, 4, 0);
  EXPECT_EQ(c, std::vector<float>(6, 9.0F));
  gemm(Isa::kBaseline, nullptr, nullptr, c.data(), 2, 0, 3);
  EXPECT_EQ(c, std::vector<float>(6, 0.0F));
}

TEST(Gemm, RefusesUnsupportedInstructionSetsAndNegativeSizes) {
  const float one = 1;
  float out = 0;
  EXPECT_THROW(gemm(static_cast<Isa>(77), &one, &one, &out, 1, 1, 1), InvalidArgument);
  EXPECT_THROW(gemm(Isa::kBaseline, &one, &one, &out, 1, -1, 1), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
