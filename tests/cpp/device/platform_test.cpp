// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/platform.h"

#include <gtest/gtest.h>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

TEST(Platform, GpusArePreferredWhereTheirNameIsTheFirst) {
  EXPECT_TRUE(prefers_gpus({.names = "gpu", .source = "test"}));
  EXPECT_TRUE(prefers_gpus({.names = "cuda,cpu", .source = "test"}));
  EXPECT_FALSE(prefers_gpus({.names = "cpu,gpu", .source = "test"}));
  EXPECT_FALSE(prefers_gpus({.names = "", .source = "test"}));
  EXPECT_FALSE(prefers_gpus({}));
}

TEST(Platform, ARequestOfAnotherPlatformNamesItsSource) {
  use_platforms({});
  use_platforms({.names = "cpu", .source = "test"});
  EXPECT_EQ(message_of([] { use_platforms({.names = "cpu,tpu", .source = "JAX_PLATFORMS"}); }),
            "devices: JAX_PLATFORMS requests platform \"tpu\", which is not available; expected one of: cpu; request "
            "cpu, or leave it out");
}

}  // namespace
}  // namespace artifex_devices
