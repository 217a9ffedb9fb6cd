// SPDX-License-Identifier: Apache-2.0
// Arenas and the system calls that they make: never under a lock, and again where another thread was giving pages back.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../base/mebibyte.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/page_budget.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

class Arenas : public ::testing::Test {
 protected:
  void SetUp() override { Arena::trim_all(); }
  void TearDown() override {
    before_each_page_call({});
    config().cache_bytes = -1;
    g_usable_bytes = -1;
    Arena::trim_all();
  }
  Arena& arena_ = Arena::of_node(0);
};

TEST_F(Arenas, WaitForAThreadThatUnmapsCachedBlocks) {
  {
    const BlockRef cached = arena_.allocate(16 * kMiB);
  }
  const int64_t limit = held().mapped + 8 * kMiB;
  std::atomic<bool> is_unmapping{false};
  std::atomic<bool> is_refused{false};
  before_each_page_call([&](const std::string& name, size_t bytes) {
    if (name == "munmap" && !is_unmapping.exchange(true)) {
      is_unmapping.notify_all();
      is_refused.wait(false);
    }
    if (name != "mmap" || held().mapped + static_cast<int64_t>(bytes) <= limit) return false;
    is_refused = true;
    is_refused.notify_all();
    return true;
  });
  std::thread trimming([] { Arena::trim_all(); });
  is_unmapping.wait(false);
  EXPECT_EQ(Arena::total_cached_bytes(), 0);
  EXPECT_NO_THROW(EXPECT_TRUE(arena_.allocate(20 * kMiB)));
  trimming.join();
}

TEST_F(Arenas, TrimBeforeMappingMoreThanTheUsableMemory) {
  {
    const BlockRef cached = arena_.allocate(64 * kMiB);
  }
  const int64_t before = held().mapped - 64 * kMiB;
  g_usable_bytes = mapped_bytes() + 448 * kMiB;
  std::atomic<int64_t> most{0};
  before_each_page_call([&](const std::string& name, size_t bytes) {
    if (name == "mmap") most = std::max(most.load(), held().mapped - before + static_cast<int64_t>(bytes));
    return false;
  });
  const BlockRef block = arena_.allocate(480 * kMiB);
  EXPECT_LE(most, 482 * kMiB);  // aligned to 2 MiB
}

#ifdef ARTIFEX_CHECK_LOCKS

/// Names of the system calls for pages so far, and the reports on those under a lock.
struct Calls {
  std::mutex mutex;
  std::set<std::string> made;
  std::string under_a_lock;
};
Calls* g_noted_calls = nullptr;

TEST_F(Arenas, MakeNoSystemCallUnderALock) {
  Calls calls;
  g_noted_calls = &calls;
  lock_check::set_violation_hook([](const std::string& message) { g_noted_calls->under_a_lock = message; });
  std::atomic<int> locks{0};
  before_each_page_call([&](const char* name, size_t) {
    const std::lock_guard lock(calls.mutex);
    calls.made.insert(name);
    no_lock_held(name);
    return std::string(name) == "mlock" && ++locks % 3 == 0;
  });
  g_usable_bytes = 512 * kMiB;
  for (const bool caching : {true, false}) {
    for (const MemoryKind kind : kMemoryKinds) {
      Arena& arena = Arena::of_node(0, kind, caching);
      const std::shared_ptr<void> reserve = arena.preallocate(4 * kMiB, "test");
      std::vector<BlockRef> blocks;
      for (int i = 0; i < 200; ++i) blocks.push_back(arena.allocate(i * 211));
      for (int64_t size = 1; size < 8; ++size) blocks.push_back(arena.allocate(size * kMiB));
      blocks.back()->mark_for_system();
      blocks.clear();
      blocks.push_back(arena.allocate(80 * kMiB));  // more than is cached without an offer to the system
      blocks.clear();
      config().cache_bytes = 4 * kMiB;
      blocks.push_back(arena.allocate(2 * kMiB));
      blocks.clear();
      for (int i = 0; i < 8000; ++i) blocks.push_back(arena.allocate(1024));
      blocks.clear();
      config().cache_bytes = -1;
      Arena::trim_all();
    }
  }
  before_each_page_call({});
  lock_check::set_violation_hook(nullptr);
  EXPECT_EQ(calls.under_a_lock, "");
  EXPECT_EQ(calls.made, (std::set<std::string>{"madvise", "mlock", "mmap", "munlock", "munmap"}));
}

#endif

/// Bytes that this process has locked, as the system counts them.
int64_t locked_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stoll(line.substr(6)) << 10;
  }
  return -1;
}

/// Whether all of the bytes are locked, as the system shows it.
bool is_locked(const std::byte* data, int64_t bytes) {
  std::ifstream smaps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(data);
  const uintptr_t wanted_end = wanted + static_cast<uintptr_t>(bytes);
  uintptr_t begin = 0;
  uintptr_t end = 0;
  int64_t found = 0;
  for (std::string line; std::getline(smaps, line);) {
    char dash = 0;
    uintptr_t first = 0;
    uintptr_t last = 0;
    std::istringstream head(line);
    if (head >> std::hex >> first >> dash >> last && dash == '-') {
      begin = std::max(first, wanted);
      end = std::min(last, wanted_end);
    } else if (line.starts_with("VmFlags:") && begin < end && line.find(" lo ") != std::string::npos) {
      found += static_cast<int64_t>(end - begin);
    }
  }
  return found == bytes;
}

TEST_F(Arenas, CountLockedPagesDuringConcurrentLocking) {
  Arena& arena = Arena::of_node(0, MemoryKind::kPinnedHost);
  ASSERT_EQ(arena.stats().bytes_locked, locked_bytes());
  std::atomic<int> locks{0};
  before_each_page_call([&](const std::string& name, size_t) {
    if (name == "munlock") std::this_thread::yield();  // others may take the pages
    return name == "mlock" && ++locks % 5 == 0;
  });
  std::vector<std::vector<BlockRef>> kept(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kept.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      kept[t].resize(20);
      for (int i = 0; i < 400; ++i) {
        kept[t][random() % 20] = arena.allocate(i % 40 == 0 ? 2 * kMiB : static_cast<int64_t>(random() % 20'000));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  before_each_page_call({});
  EXPECT_GT(arena.stats().bytes_locked, 0);
  EXPECT_EQ(arena.stats().bytes_locked, locked_bytes());
  for (const auto& blocks : kept) {
    for (const BlockRef& block : blocks) {
      EXPECT_TRUE(!block || !block->is_locked() || is_locked(block->host_data(), block->bytes()));
    }
  }
  kept.clear();
  Arena::trim_all();
  EXPECT_EQ(arena.stats().bytes_locked, 0);
  EXPECT_EQ(locked_bytes(), 0);
}

}  // namespace
}  // namespace artifex_devices::faults
