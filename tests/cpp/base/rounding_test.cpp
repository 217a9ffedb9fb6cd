// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

namespace artifex_devices {
namespace {

#if defined(__GNUC__) && !defined(__clang__)
[[gnu::optimize("O2")]]  // as the rooms; tests are compiled with -O1, which never fuses
#endif
[[gnu::noinline]] double square_minus(double factor, double other) {
  return factor * factor - other;
}

// A fused multiply-add, which processors for aarch64 have, keeps the last bit of the product: 2^-60.
TEST(Rounding, RoundsAProductBeforeItIsAdded) { EXPECT_EQ(square_minus(1 + 0x1p-30, 1 + 0x1p-29), 0); }

}  // namespace
}  // namespace artifex_devices
