// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/page_source.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "../base/forked_child.h"
#include "../base/mebibyte.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/page_budget.h"

namespace artifex_devices {
namespace {

TEST(Reserve, UsesTheFirstFitAndJoinsAdjacentRanges) {
  const std::vector<std::byte> owned(8 * kMiB);
  auto* memory = const_cast<std::byte*>(owned.data());  // only its address is used
  Reserve reserve(memory, 8 * kMiB);
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
  EXPECT_EQ(reserve.used_bytes(), 0);
  EXPECT_EQ(reserve.cut(8 * kMiB), memory);
  EXPECT_TRUE(reserve.contains(memory + 8 * kMiB - 1));
  EXPECT_FALSE(reserve.contains(memory + reserve.bytes()));
}

TEST(Reserve, IsDoneOnceItIsRetiredAndUnused) {
  Reserve reserve(nullptr, 4 * kMiB);
  std::byte* piece = reserve.cut(1);
  reserve.retire();
  EXPECT_EQ(reserve.cut(1), nullptr);
  EXPECT_EQ(reserve.free_bytes(), 0);
  EXPECT_EQ(reserve.used_bytes(), 2 * kMiB);
  EXPECT_FALSE(reserve.is_done());
  reserve.give(piece, 1);
  EXPECT_TRUE(reserve.is_done());
}

TEST(PageSource, TakesFromTheSystemWhatIsNotPreallocated) {
  const int64_t before = mapped_bytes();
  PageSource pages(0, false);
  {
    const std::shared_ptr<void> held = pages.preallocate(4 * kMiB, "test");
    EXPECT_EQ(mapped_bytes(), before + 4 * kMiB);
    std::byte* inside = pages.take(2 * kMiB, true);
    std::byte* outside = pages.take(4 * kMiB, true);
    EXPECT_TRUE(pages.is_preallocated(inside));
    EXPECT_FALSE(pages.is_preallocated(outside));
    EXPECT_EQ(mapped_bytes(), before + 8 * kMiB);
    EXPECT_EQ(pages.preallocated().bytes, 4 * kMiB);
    EXPECT_EQ(pages.preallocated().free_bytes, 2 * kMiB);
    pages.give(outside, 4 * kMiB);
    pages.give(inside, 2 * kMiB);
    EXPECT_EQ(pages.preallocated().free_bytes, 4 * kMiB);
  }
  EXPECT_EQ(pages.preallocated().bytes, 0);
  EXPECT_EQ(mapped_bytes(), before);
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

}  // namespace
}  // namespace artifex_devices
