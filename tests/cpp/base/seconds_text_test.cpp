// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/seconds_text.h"

#include <gtest/gtest.h>

namespace artifex_devices {
namespace {

TEST(SecondsText, HasFourDigitsAndAUnit) {
  EXPECT_EQ(seconds_text(560e-6), "560 us");
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(2.5), "2.5 s");
  EXPECT_EQ(seconds_text(0.0123456), "12.35 ms");
  EXPECT_EQ(seconds_text(3e-9), "3 ns");
}

TEST(SecondsText, RoundsUpToTheNextUnitAndGroupsLongNumbers) {
  EXPECT_EQ(seconds_text(0.00099996), "1 ms");
  EXPECT_EQ(seconds_text(9999.4), "9999 s");
  EXPECT_EQ(seconds_text(86400), "86,400 s");
  EXPECT_EQ(seconds_text(1234567), "1,234,567 s");
}

}  // namespace
}  // namespace artifex_devices
