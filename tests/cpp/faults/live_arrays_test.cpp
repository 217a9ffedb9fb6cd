// SPDX-License-Identifier: Apache-2.0
// A list of live arrays for which there is no memory.
#include "artifex_devices/array/live_arrays.h"

#include "../transfer/host_arrays.h"
#include "artifex_devices/transfer/device_put.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

using namespace artifex_devices::test;

TEST(LiveArraysWithoutMemory, ReleaseTheLastReferenceDuringAFailedListing) {
  const auto world = make_world(1, 1);
  Random random(1);
  ArrayRef array = device_put(dense(random, {4}, DType::kFloat32), named(world, {1}, {"a"}), true);
  ASSERT_EQ(live_arrays(world.get()).size(), 1u);
  before_each_refusal([&] { array = nullptr; });
  {
    const Failing failing(Call::kNew, 1, false);
    EXPECT_THROW(live_arrays(world.get()), std::bad_alloc);
  }
  before_each_refusal(nullptr);
  EXPECT_EQ(array, nullptr);
  EXPECT_TRUE(live_arrays(world.get()).empty());
}

}  // namespace
}  // namespace artifex_devices::faults
