// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/bytes_text.h"

#include <gtest/gtest.h>

namespace artifex_devices {
namespace {

TEST(BytesText, AppendsAUnit) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(int64_t{256} << 20), "256.0 MiB");
  EXPECT_EQ(bytes_text(INT64_MAX), "8.0 EiB");
}

}  // namespace
}  // namespace artifex_devices
