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

TEST(Platform, BackendsAreFoundByName) {
  EXPECT_EQ(backend_of_platform("cpu"), nullptr);
  const BackendRef gpu = backend_of_platform("gpu");
  EXPECT_TRUE(gpu->is_emulated());
  EXPECT_EQ(gpu->device_count(), std::nullopt);
  EXPECT_EQ(backend_of_platform("gpu", "h100")->device_kind(0), "NVIDIA H100 80GB HBM3");
  EXPECT_THROW(backend_of_platform("gpu", "spam"), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
