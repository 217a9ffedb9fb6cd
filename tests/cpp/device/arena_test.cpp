// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "../base/mebibyte.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

class ArenaTest : public testing::Test {
 protected:
  void SetUp() override { Arena::trim_all(); }
  void TearDown() override {
    config().cache_bytes = -1;
    Arena::trim_all();
  }
  static bool is_aligned(const BlockRef& block, uintptr_t to) {
    return reinterpret_cast<uintptr_t>(block->host_data()) % to == 0;
  }
  Arena& arena_ = Arena::of_node(0);
};

TEST_F(ArenaTest, ReturnsAlignedWritableBlocksOfAnySize) {
  std::vector<BlockRef> blocks;
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{64}, int64_t{65}, int64_t{4096}, int64_t{100'000},
                              kMiB - 1, kMiB, kMiB + 1, 3 * kMiB, 17 * kMiB + 5}) {
    BlockRef block = arena_.allocate(bytes);
    ASSERT_TRUE(block);
    EXPECT_NE(block->host_data(), nullptr);
    EXPECT_EQ(block->bytes(), bytes);
    EXPECT_EQ(block->space(), &arena_);
    EXPECT_EQ(block->use_count(), 1);
    EXPECT_TRUE(is_aligned(block, bytes < kMiB ? 64 : uintptr_t{2} << 20));
    std::memset(block->host_data(), 0xAB, static_cast<size_t>(bytes));
    blocks.push_back(std::move(block));
  }
  EXPECT_THROW(arena_.allocate(-1), InvalidArgument);
}

TEST_F(ArenaTest, FreesABlockAfterItsLastUse) {
  const int64_t before = arena_.stats().bytes_in_use;
  BlockRef first = arena_.allocate(1000);
  EXPECT_EQ(arena_.stats().bytes_in_use, before + 1024);
  BlockRef second = first;
  EXPECT_EQ(first->use_count(), 2);
  EXPECT_EQ(first, second);
  first = BlockRef();
  EXPECT_EQ(second->use_count(), 1);
  EXPECT_EQ(arena_.stats().bytes_in_use, before + 1024);
  BlockRef third = std::move(second);
  EXPECT_EQ(third->use_count(), 1);
  third = BlockRef();
  EXPECT_EQ(arena_.stats().bytes_in_use, before);
}

TEST_F(ArenaTest, ReusesSmallBlocksLastInFirstOut) {
  BlockRef a = arena_.allocate(700);
  BlockRef b = arena_.allocate(700);
  std::byte* const at_a = a->host_data();
  std::byte* const at_b = b->host_data();
  EXPECT_NE(at_a, at_b);
  a = BlockRef();
  b = BlockRef();
  const int64_t hits = arena_.stats().cache_hits;
  const BlockRef c = arena_.allocate(650);  // of the same class
  const BlockRef d = arena_.allocate(768);
  EXPECT_EQ(c->host_data(), at_b);
  EXPECT_EQ(d->host_data(), at_a);
  EXPECT_EQ(d->bytes(), 768);
  EXPECT_EQ(arena_.stats().cache_hits, hits + 2);
}

TEST_F(ArenaTest, KeepsSmallBlocksDisjoint) {
  std::mt19937 random(7);
  std::vector<std::pair<BlockRef, int>> blocks;
  for (int i = 0; i < 4000; ++i) {
    if (!blocks.empty() && random() % 3 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto& [block, value] = blocks.back();
      for (int64_t k = 0; k < block->bytes(); ++k) ASSERT_EQ(static_cast<int>(block->host_data()[k]), value);
      blocks.pop_back();
    } else {
      const int value = static_cast<int>(random() % 256);
      BlockRef block = arena_.allocate(static_cast<int64_t>(random() % 3000));
      std::memset(block->host_data(), value, static_cast<size_t>(block->bytes()));
      blocks.emplace_back(std::move(block), value);
    }
  }
}

TEST_F(ArenaTest, ReusesMappedBlocksForSimilarSizes) {
  BlockRef block = arena_.allocate(20 * kMiB);
  std::byte* const at = block->host_data();
  block = BlockRef();
  EXPECT_EQ(arena_.stats().bytes_cached, 20 * kMiB);
  block = arena_.allocate(17 * kMiB);
  EXPECT_EQ(block->host_data(), at);
  EXPECT_EQ(block->bytes(), 17 * kMiB);
  EXPECT_EQ(arena_.stats().bytes_cached, 0);
  block = BlockRef();
  const int64_t hits = arena_.stats().cache_hits;
  block = arena_.allocate(8 * kMiB);  // would waste more than a quarter
  EXPECT_EQ(arena_.stats().cache_hits, hits);
  EXPECT_EQ(arena_.stats().bytes_cached, 20 * kMiB);
}

TEST_F(ArenaTest, TakesTheBestFit) {
  BlockRef large = arena_.allocate(24 * kMiB);
  BlockRef small = arena_.allocate(20 * kMiB);
  std::byte* const at = small->host_data();
  small = BlockRef();
  large = BlockRef();  // freed last, yet not the best
  const BlockRef again = arena_.allocate(20 * kMiB);
  EXPECT_EQ(again->host_data(), at);
}

TEST_F(ArenaTest, CachesTheMostRecentlyFreedBlocks) {
  config().cache_bytes = 50 * kMiB;
  BlockRef oldest = arena_.allocate(20 * kMiB);
  BlockRef middle = arena_.allocate(22 * kMiB);
  BlockRef newest = arena_.allocate(24 * kMiB);
  oldest = BlockRef();
  middle = BlockRef();
  newest = BlockRef();
  EXPECT_EQ(arena_.stats().bytes_cached, 46 * kMiB);
  EXPECT_EQ(Arena::total_cached_bytes(), 46 * kMiB);
  const int64_t hits = arena_.stats().cache_hits;
  const BlockRef a = arena_.allocate(22 * kMiB);
  const BlockRef b = arena_.allocate(24 * kMiB);
  EXPECT_EQ(arena_.stats().cache_hits, hits + 2);
}

TEST_F(ArenaTest, UnmapsBlocksWithoutACache) {
  config().cache_bytes = 0;
  const int64_t mapped = arena_.stats().bytes_mapped;
  {
    const BlockRef block = arena_.allocate(8 * kMiB);
  }
  EXPECT_EQ(arena_.stats().bytes_cached, 0);
  EXPECT_EQ(arena_.stats().bytes_mapped, mapped);
}

TEST_F(ArenaTest, UnmapsMarkedBlocks) {
  BlockRef block = arena_.allocate(8 * kMiB);
  block->mark_for_system();
  block = BlockRef();
  EXPECT_EQ(Arena::total_cached_bytes(), 0);
  block = arena_.allocate(8 * kMiB);
  block = BlockRef();  // the mark was that of the old block
  EXPECT_EQ(Arena::total_cached_bytes(), 8 * kMiB);
}

TEST_F(ArenaTest, FreesAllCachedBlocksOnTrim) {
  const int64_t mapped = arena_.stats().bytes_mapped;
  {
    std::vector<BlockRef> blocks;
    for (int i = 0; i < 3000; ++i) blocks.push_back(arena_.allocate(5000));
    blocks.push_back(arena_.allocate(30 * kMiB));
  }
  EXPECT_GE(Arena::total_cached_bytes(), 3000 * 5000 + 30 * kMiB);
  const int64_t cached = Arena::total_cached_bytes();
  EXPECT_EQ(Arena::trim_all(), cached);
  EXPECT_EQ(Arena::total_cached_bytes(), 0);
  EXPECT_EQ(arena_.stats().bytes_mapped, mapped);
  EXPECT_EQ(Arena::trim_all(), 0);
}

TEST_F(ArenaTest, FreesChunksOfSmallBlocksOverTheLimit) {
  config().cache_bytes = 4 * kMiB;
  {
    std::vector<BlockRef> blocks;
    for (int i = 0; i < 20'000; ++i) blocks.push_back(arena_.allocate(1024));
  }
  EXPECT_LE(Arena::total_cached_bytes(), 6 * kMiB);
}

TEST_F(ArenaTest, CountsAllocationsAndThePeak) {
  const MemorySpaceStats before = arena_.stats();
  {
    const BlockRef a = arena_.allocate(16 * kMiB);
    const BlockRef b = arena_.allocate(100);
  }
  const MemorySpaceStats after = arena_.stats();
  EXPECT_EQ(after.num_allocs, before.num_allocs + 2);
  EXPECT_GE(after.peak_bytes_in_use, before.bytes_in_use + 16 * kMiB + 128);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_GE(after.bytes_mapped, after.bytes_in_use + after.bytes_cached);
}

TEST_F(ArenaTest, ReportsTheSizeOfAnImpossibleRequest) {
  for (const int64_t bytes : {INT64_MAX, INT64_MAX - 4096, int64_t{1} << 50, int64_t{1} << 46}) {
    try {
      arena_.allocate(bytes);
      FAIL() << bytes;
    } catch (const OutOfMemory& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("RESOURCE_EXHAUSTED: ")) << message;
      EXPECT_NE(message.find(std::to_string(bytes) + " bytes"), std::string::npos) << message;
    }
  }
  EXPECT_TRUE(arena_.allocate(100));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadows need the address space
TEST_F(ArenaTest, DropsCachesBeforeAnAllocationFails) {
  const pid_t child = fork();
  if (child == 0) {
    int result = 1;
    try {
      config().cache_bytes = 1024 * kMiB;
      {
        const BlockRef block = arena_.allocate(200 * kMiB);
      }
      int64_t pages = 0;
      FILE* file = std::fopen("/proc/self/statm", "r");
      if (file && std::fscanf(file, "%ld", &pages) == 1) {
        const rlimit limit{static_cast<rlim_t>(pages * 4096 + 100 * kMiB), RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
        const BlockRef other = arena_.allocate(250 * kMiB);  // does not fit beside the cached one
        result = Arena::total_cached_bytes() == 0 ? 0 : 2;
      }
    } catch (const std::exception&) {
      result = 3;
    }
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST_F(ArenaTest, AllowsThreadsToFreeBlocksOfOthers) {
  constexpr int kThreads = 4;
  std::vector<BlockRef> shared(64);
  std::mutex mutex;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 2000; ++i) {
        const int64_t bytes = i % 100 == 0 ? 2 * kMiB : static_cast<int64_t>(random() % 5000);
        BlockRef block = arena_.allocate(bytes);
        if (bytes > 0) {
          block->host_data()[0] = static_cast<std::byte>(t);
          block->host_data()[bytes - 1] = static_cast<std::byte>(t);
          if (block->host_data()[0] != static_cast<std::byte>(t) && bytes > 1) ++wrong;
        }
        const std::lock_guard lock(mutex);
        std::swap(shared[random() % shared.size()], block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  shared.clear();
}

TEST_F(ArenaTest, AllocatesInAForkedChildWithoutCachedBlocks) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer does not support a fork while another thread allocates";
#endif
  BlockRef live = arena_.allocate(4 * kMiB);
  std::memset(live->host_data(), 7, static_cast<size_t>(4 * kMiB));
  BlockRef freed = arena_.allocate(16 * kMiB);
  freed = BlockRef();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const BlockRef small = arena_.allocate(100);
      const BlockRef large = arena_.allocate(2 * kMiB);
    }
  });
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      int result = 0;
      try {
        if (live->host_data()[12345] != std::byte{7}) result = 1;
        if (arena_.stats().bytes_mapped < arena_.stats().bytes_in_use) result = 2;
        const BlockRef block = arena_.allocate(16 * kMiB);
        std::memset(block->host_data(), 1, static_cast<size_t>(block->bytes()));
        const BlockRef small = arena_.allocate(300);
        std::memset(small->host_data(), 1, 300);
        Arena::trim_all();
      } catch (...) {
        result = 3;
      }
      _exit(result);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  stop = true;
  busy.join();
}

TEST_F(ArenaTest, MapsMissingNodesToExistingOnes) {
  const int nodes = static_cast<int>(Machine::live()->numa_nodes().size());
  EXPECT_EQ(&Arena::of_node(nodes), &Arena::of_node(0));
  EXPECT_EQ(&Arena::of_node(7 * nodes), &Arena::of_node(0));
  EXPECT_EQ(&Arena::of_node(-1), &Arena::of_node(0));
  EXPECT_EQ(Arena::of_node(nodes - 1).node(), nodes - 1);
}

TEST(ForeignBlock, NotifiesTheOwnerOnceAfterTheLastUse) {
  int released = 0;
  char memory[16] = {};
  BlockRef block = foreign_block(memory, 16, [&] { ++released; });
  EXPECT_TRUE(block->is_foreign());
  EXPECT_EQ(block->space(), nullptr);
  EXPECT_EQ(static_cast<void*>(block->host_data()), memory);
  EXPECT_EQ(block->bytes(), 16);
  BlockRef other = block;
  block = BlockRef();
  EXPECT_EQ(released, 0);
  other = BlockRef();
  EXPECT_EQ(released, 1);
  {
    const BlockRef silent = foreign_block(nullptr, 0, {});
  }
  {
    const BlockRef throwing = foreign_block(memory, 16, [] { throw std::runtime_error("owner"); });
  }
}

}  // namespace
}  // namespace artifex_devices
