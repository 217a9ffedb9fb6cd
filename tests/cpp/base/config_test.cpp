// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/config.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

TEST(Config, IsOneObjectWithDefaults) {
  EXPECT_EQ(config().cache_bytes.load(), -1);
  EXPECT_EQ(config().parallel_copy_bytes.load(), 512 * 1024);
  EXPECT_EQ(config().async_copy_bytes.load(), 4 * 1024 * 1024);
  config().cache_bytes = 5;
  EXPECT_EQ(config().cache_bytes.load(), 5);
  config().cache_bytes = -1;
}

TEST(Config, FindsItsOptionsByName) {
  EXPECT_EQ(&config_option("cache_bytes"), &config().cache_bytes);
  EXPECT_EQ(&config_option("parallel_copy_bytes"), &config().parallel_copy_bytes);
  EXPECT_EQ(&config_option("async_copy_bytes"), &config().async_copy_bytes);
  EXPECT_EQ(&config_option("trace_allocations"), &config().trace_allocations);
  EXPECT_THROW(config_option("speed"), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
