// SPDX-License-Identifier: Apache-2.0
// What arenas cache and map where memory is short. The usable memory is a made-up number, so that few pages are
// touched.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../base/forked_child.h"
#include "../base/mebibyte.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/arenas.h"
#include "artifex_devices/device/cpu/page_budget.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {
namespace {

class ArenaLimitsTest : public testing::Test {
 protected:
  void SetUp() override { Arena::trim_all(); }
  void TearDown() override {
    config().cache_bytes = -1;
    g_usable_bytes = -1;
    Arena::trim_all();
  }
  void free_one(int64_t bytes) { const BlockRef block = arena_.allocate(bytes); }

  static int64_t mapped_by_stats() {
    int64_t bytes = 0;
    for (const Arena* each : all_arenas()) bytes += each->stats().bytes_mapped;
    return bytes;
  }

  Arena& arena_ = Arena::of_node(0);
};

TEST_F(ArenaLimitsTest, DropsCachedBlocksBeforeTheLimit) {
  g_usable_bytes = mapped_bytes() + 1024 * kMiB;
  config().cache_bytes = 1024 * kMiB;
  free_one(512 * kMiB);
  const BlockRef fits = arena_.allocate(256 * kMiB);  // beside the cached block
  EXPECT_EQ(Arena::total_cached_bytes(), 512 * kMiB);
  const BlockRef more = arena_.allocate(384 * kMiB);
  EXPECT_EQ(Arena::total_cached_bytes(), 0);
}

TEST_F(ArenaLimitsTest, DropsOnlyTheOldestBlocks) {
  g_usable_bytes = mapped_bytes() + 1024 * kMiB;
  config().cache_bytes = 1024 * kMiB;
  {
    const BlockRef newest = arena_.allocate(128 * kMiB);
    const BlockRef middle = Arena::of_node(0, MemoryKind::kUnpinnedHost).allocate(256 * kMiB);
    const BlockRef oldest = arena_.allocate(512 * kMiB);
  }
  const BlockRef more = arena_.allocate(200 * kMiB);
  EXPECT_EQ(Arena::total_cached_bytes(), 384 * kMiB);
  EXPECT_EQ(arena_.stats().bytes_cached, 128 * kMiB);
}

TEST_F(ArenaLimitsTest, CountsOtherMemoryOfTheProcess) {
  std::vector<char> other(static_cast<size_t>(128 * kMiB), 1);
  free_one(64 * kMiB);
  g_usable_bytes = resident_memory_bytes() + 32 * kMiB;
  config().cache_bytes = 1024 * kMiB;
  const BlockRef block = arena_.allocate(48 * kMiB);
  EXPECT_EQ(Arena::total_cached_bytes(), 0);
  EXPECT_EQ(other.back(), 1);
}

TEST_F(ArenaLimitsTest, DropsNothingForAnImpossibleRequest) {
  free_one(64 * kMiB);
  EXPECT_THROW(arena_.allocate(int64_t{1} << 46), OutOfMemory);
  EXPECT_EQ(Arena::total_cached_bytes(), 64 * kMiB);
}

TEST_F(ArenaLimitsTest, ReusesBlocksOverOneGibibyteOnLargeMachines) {
  g_usable_bytes = 8192 * kMiB;
  for (const int64_t bytes : {1280 * kMiB, 2048 * kMiB}) {
    BlockRef block = arena_.allocate(bytes);
    const std::byte* at = block->host_data();
    const int64_t hits = arena_.stats().cache_hits;
    block = BlockRef();
    EXPECT_EQ(Arena::total_cached_bytes(), bytes);
    block = arena_.allocate(bytes);
    EXPECT_EQ(block->host_data(), at);
    EXPECT_EQ(arena_.stats().cache_hits, hits + 1);
    block = BlockRef();
    Arena::trim_all();
  }
  free_one(2050 * kMiB);
  EXPECT_EQ(Arena::total_cached_bytes(), 0);
}

TEST_F(ArenaLimitsTest, LimitsIdleMemoryToAQuarterOfTheUsableMemory) {
  g_usable_bytes = 2048 * kMiB;
  for (const int64_t bytes : {400 * kMiB, 120 * kMiB, 360 * kMiB, 512 * kMiB}) {
    free_one(bytes);
    EXPECT_GE(Arena::total_cached_bytes(), bytes);
    EXPECT_LE(Arena::total_cached_bytes(), 512 * kMiB);
  }
}

/// KiB of a mapping's field in /proc/self/smaps, for the mapping that holds an address.
int64_t smaps_field(const void* address, const std::string& field) {
  std::ifstream smaps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  bool is_inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    std::istringstream head(line);
    if (head >> std::hex >> begin >> dash >> end && dash == '-') is_inside = begin <= wanted && wanted < end;
    if (is_inside && line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

TEST_F(ArenaLimitsTest, OffersCachedBlocksBeyondAnEighthToTheSystem) {
  g_usable_bytes = 2048 * kMiB;  // far above what the sanitizers keep
  const auto free_touched = [&](int64_t bytes) {
    const BlockRef block = arena_.allocate(bytes);
    std::memset(block->host_data(), 1, 4 * kMiB);
    return block->host_data();
  };
  const std::byte* firm = free_touched(160 * kMiB);
  if (smaps_field(firm, "LazyFree") < 0) GTEST_SKIP() << "this kernel does not list lazily freed pages";
  EXPECT_EQ(smaps_field(firm, "LazyFree"), 0);
  const std::byte* offered = free_touched(280 * kMiB);
  EXPECT_EQ(Arena::total_cached_bytes(), 440 * kMiB);
  EXPECT_EQ(smaps_field(offered, "LazyFree"), 4 * 1024);
  const BlockRef again = arena_.allocate(280 * kMiB);
  ASSERT_EQ(again->host_data(), offered);
  std::memset(again->host_data(), 2, 4 * kMiB);
  EXPECT_EQ(smaps_field(offered, "LazyFree"), 0);
}

TEST_F(ArenaLimitsTest, CountsBlocksOfThreadsWithinTheLimit) {
  constexpr int kThreads = 8;
  g_usable_bytes = mapped_bytes() + 64 * kMiB;
  config().cache_bytes = 24 * kMiB;
  const int64_t in_use = arena_.stats().bytes_in_use;
  std::atomic<int64_t> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      Arena& arena = Arena::of_node(0, kMemoryKinds[static_cast<size_t>(t) % kMemoryKinds.size()]);
      for (int i = 0; i < 300; ++i) {
        const BlockRef block = arena.allocate(static_cast<int64_t>(1 + random() % 6) * kMiB);
        block->host_data()[0] = block->host_data()[block->bytes() - 1] = static_cast<std::byte>(t);
        most = std::max(most.load(), mapped_bytes());
        if (i % 50 == 0) Arena::trim_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, g_usable_bytes);
  EXPECT_EQ(arena_.stats().bytes_in_use, in_use);
  EXPECT_LE(Arena::total_cached_bytes(), 24 * kMiB);
  EXPECT_EQ(mapped_bytes(), mapped_by_stats());
}

TEST_F(ArenaLimitsTest, CountsTheMemoryOfAForkedChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  const BlockRef used = arena_.allocate(4 * kMiB);
  free_one(16 * kMiB);
  EXPECT_EQ(in_forked_child([&]() -> std::string {
              if (Arena::total_cached_bytes() >= 16 * kMiB) return "has the free block";
              if (mapped_bytes() != mapped_by_stats()) return "counts other bytes";
              const BlockRef block = arena_.allocate(16 * kMiB);
              std::memset(block->host_data(), 1, static_cast<size_t>(block->bytes()));
              return mapped_bytes() == mapped_by_stats() ? "right" : "counts other bytes afterwards";
            }),
            "right");
  EXPECT_EQ(mapped_bytes(), mapped_by_stats());
  free_one(16 * kMiB);
  EXPECT_GT(arena_.stats().cache_hits, 0);
}

}  // namespace
}  // namespace artifex_devices
