// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "../base/forked_child.h"
#include "../base/mebibyte.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/cpu/arena_reserve.h"

namespace artifex_devices {
namespace {

TEST(Reserve, UsesTheFirstFitAndJoinsAdjacentRanges) {
  const std::vector<std::byte> owned(8 * kMiB);
  auto* memory = const_cast<std::byte*>(owned.data());  // only its address is used
  ArenaReserve reserve(memory, 8 * kMiB);
  EXPECT_EQ(reserve.bytes(), 8 * kMiB);
  std::byte* a = reserve.cut(1);
  std::byte* b = reserve.cut(2 * kMiB + 1);
  EXPECT_EQ(a, memory);
  EXPECT_EQ(b, memory + 2 * kMiB);
  EXPECT_EQ(reserve.free_bytes(), 2 * kMiB);
  EXPECT_EQ(reserve.cut(4 * kMiB), nullptr);
  reserve.give(a, 1);
  EXPECT_EQ(reserve.cut(4 * kMiB), nullptr);  // 2 MiB at either end
  reserve.give(b, 2 * kMiB + 1);
  EXPECT_TRUE(reserve.is_unused());
  EXPECT_EQ(reserve.cut(8 * kMiB), memory);
  EXPECT_TRUE(reserve.contains(memory + 8 * kMiB - 1));
  EXPECT_FALSE(reserve.contains(memory + reserve.bytes()));
}

TEST(Preallocation, ServesBlocksAndIsFreedWithTheLast) {
  Arena::trim_all();
  Arena& arena = Arena::of_node(0);
  const int64_t before = arena.stats().bytes_mapped;
  BlockRef late;
  {
    const std::shared_ptr<void> held = arena.preallocate(9 * kMiB, "test");
    EXPECT_EQ(arena.stats().bytes_preallocated, 10 * kMiB);
    EXPECT_EQ(arena.stats().bytes_mapped, before + 10 * kMiB);
    late = arena.allocate(4 * kMiB);
    std::memset(late->host_data(), 1, 4 * kMiB);
    {
      const BlockRef other = arena.allocate(6 * kMiB);
      EXPECT_EQ(arena.stats().bytes_mapped, before + 10 * kMiB);
      const BlockRef more = arena.allocate(2 * kMiB);  // from the system
      EXPECT_EQ(arena.stats().bytes_mapped, before + 12 * kMiB);
    }
    const BlockRef again = arena.allocate(5 * kMiB);
    EXPECT_EQ(again->host_data(), late->host_data() + 4 * kMiB);
    Arena::trim_all();
    EXPECT_EQ(arena.stats().bytes_mapped, before + 10 * kMiB);
  }
  EXPECT_EQ(arena.stats().bytes_preallocated, 4 * kMiB);
  EXPECT_EQ(late->host_data()[kMiB], std::byte{1});
  const BlockRef elsewhere = arena.allocate(6 * kMiB);
  EXPECT_NE(elsewhere->host_data(), late->host_data() + 4 * kMiB);
  late = BlockRef();
  EXPECT_EQ(arena.stats().bytes_preallocated, 0);
}

TEST(Preallocation, RefusesMoreThanIsFree) {
  Arena& arena = Arena::of_node(0);
  EXPECT_EQ(arena.preallocate(0, "test"), nullptr);
  for (const int64_t bytes : {int64_t{1} << 45, INT64_MAX}) {
    EXPECT_THROW(arena.preallocate(bytes, "test"), OutOfMemory);
    EXPECT_EQ(arena.stats().bytes_preallocated, 0);
  }
}

TEST(Preallocation, ServesAForkedChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  Arena& arena = Arena::of_node(0);
  const std::shared_ptr<void> held = arena.preallocate(8 * kMiB, "test");
  const BlockRef live = arena.allocate(2 * kMiB);
  std::memset(live->host_data(), 3, 2 * kMiB);
  const pid_t child = fork();
  if (child == 0) {
    const BlockRef block = arena.allocate(4 * kMiB);
    std::memset(block->host_data(), 4, 4 * kMiB);
    _exit(live->host_data()[100] == std::byte{3} && arena.stats().bytes_preallocated == 8 * kMiB ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

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
  const Device& device = *client->device(1);
  EXPECT_EQ(*device.bytes_limit(), device.memory_bytes() / 2);
  EXPECT_FALSE(device.arena().is_caching());
  EXPECT_FALSE(device.arena(MemoryKind::kUnpinnedHost).is_caching());
  EXPECT_EQ(client->allocator()->collective_memory_size, 7);
  const ClientRef tighter = Client::make(
      Machine::live(), {.num_devices = 1, .bytes_limit = 10, .allocator = AllocatorOptions{.memory_fraction = 0.5}});
  EXPECT_EQ(*tighter->device(0)->bytes_limit(), 10);
  EXPECT_TRUE(tighter->device(0)->arena().is_caching());
}

TEST(ClientAllocator, RefusesPreallocationWithoutMemory) {
  EXPECT_THROW(
      Client::make(Machine::live(),
                   {.num_devices = 1, .compile_only = true, .allocator = AllocatorOptions{.preallocate = true}}),
      InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
