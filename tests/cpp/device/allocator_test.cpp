// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "artifex_devices/base/error.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {
namespace {

TEST(AllocatorOptions, NameAllFieldsOutOfRange) {
  for (const double fraction : {0.0, -1.0, 1.01, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(AllocatorOptions{.memory_fraction = fraction}.check("test"), InvalidArgument) << fraction;
  }
  try {
    AllocatorOptions{.memory_fraction = 0, .collective_memory_size = -1}.check("test");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "test: memory_fraction is 0; expected a number greater than 0 and at most 1; collective_memory_size "
                 "is -1; expected a number of bytes, 0 or more; correct it, or leave it out");
  }
  AllocatorOptions{.kind = AllocatorKind::kCudaAsync, .memory_fraction = 1}.check("test");
  EXPECT_THROW(AllocatorOptions{.kind = AllocatorKind::kCudaAsync}.check_for_cpu("test"), InvalidArgument);
  EXPECT_THROW((AllocatorOptions{.kind = AllocatorKind::kPlatform, .preallocate = true}.check_for_cpu("test")),
               InvalidArgument);
}

TEST(ClientAllocator, AppliesTheFractionAndTheKind) {
  const ClientRef client = Client::make(
      Machine::live(), {.num_devices = 2, .allocator = AllocatorOptions{AllocatorKind::kPlatform, 0.5, false, 7}});
  const Device& device = *client->device(DeviceId(1));
  EXPECT_EQ(*device.bytes_limit(), device.memory_bytes() / 2);
  EXPECT_FALSE(device.arena().is_caching());
  EXPECT_FALSE(device.arena(MemoryKind::kUnpinnedHost).is_caching());
  EXPECT_EQ(client->allocator()->collective_memory_size, 7);
  const ClientRef tighter = Client::make(
      Machine::live(), {.num_devices = 1, .bytes_limit = 10, .allocator = AllocatorOptions{.memory_fraction = 0.5}});
  EXPECT_EQ(*tighter->device(DeviceId(0))->bytes_limit(), 10);
  EXPECT_TRUE(tighter->device(DeviceId(0))->arena().is_caching());
}

TEST(ClientAllocator, RefusesPreallocationWithoutMemory) {
  EXPECT_THROW(
      Client::make(Machine::live(),
                   {.num_devices = 1, .compile_only = true, .allocator = AllocatorOptions{.preallocate = true}}),
      InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
