// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/config.h"

#include <gtest/gtest.h>

namespace artifex_devices {
namespace {

TEST(Config, HasItsDefaultsAndIsOneObject) {
  EXPECT_EQ(config().cache_bytes.load(), -1);
  EXPECT_EQ(config().parallel_copy_bytes.load(), 512 * 1024);
  EXPECT_EQ(config().async_copy_bytes.load(), 4 * 1024 * 1024);
  config().cache_bytes = 5;
  EXPECT_EQ(config().cache_bytes.load(), 5);
  config().cache_bytes = -1;
}

}  // namespace
}  // namespace artifex_devices
