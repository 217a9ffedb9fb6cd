// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "../base/forked_child.h"
#include "../base/mebibyte.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/pages.h"
#include "artifex_devices/device/memory.h"

namespace artifex_devices {
namespace {

/// " rd wr mr mw me lo ac sd " of the mapping that holds an address.
std::string flags_of(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::string line;
  bool inside = false;
  while (std::getline(smaps, line)) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    std::istringstream head(line);
    if (head >> std::hex >> begin >> dash >> end && dash == '-') inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with("VmFlags:")) return " " + line.substr(9) + " ";
  }
  return "";
}

bool has(const std::string& flags, const std::string& flag) {
  return flags.find(" " + flag + " ") != std::string::npos;
}

/// What `work` returns in a child that may lock `limit` bytes.
int in_limited_child(int64_t limit, int (*work)()) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit bytes{static_cast<rlim_t>(limit), static_cast<rlim_t>(limit)};
    int result = 99;
    // The limit does not hold for root.
    if (setrlimit(RLIMIT_MEMLOCK, &bytes) == 0 && (geteuid() != 0 || setresuid(65534, 65534, 65534) == 0)) {
      try {
        result = work();
      } catch (...) {
        result = 98;
      }
    }
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class MemoryKindsTest : public testing::Test {
 protected:
  void SetUp() override { Arena::trim_all(); }
  void TearDown() override { Arena::trim_all(); }
  Arena& device_ = Arena::of_node(0);
  Arena& pinned_ = Arena::of_node(0, MemoryKind::kPinnedHost);
  Arena& unpinned_ = Arena::of_node(0, MemoryKind::kUnpinnedHost);
};

TEST_F(MemoryKindsTest, GivesEachKindItsOwnArena) {
  for (const bool caching : {true, false}) {
    for (const MemoryKind kind : kMemoryKinds) {
      Arena& arena = Arena::of_node(0, kind, caching);
      EXPECT_EQ(arena.kind(), kind);
      EXPECT_EQ(arena.is_caching(), caching);
      EXPECT_EQ(arena.node(), 0);
      const BlockRef block = arena.allocate(100);
      EXPECT_EQ(block->space(), &arena);
      EXPECT_EQ(arena.stats().bytes_in_use, caching ? 128 : page_bytes());
    }
  }
}

TEST_F(MemoryKindsTest, MapsThePagesOfEachKind) {
  const bool has_huge_pages = std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good();
  const BlockRef of_device = device_.allocate(4 * kMiB);
  const BlockRef unpinned = unpinned_.allocate(4 * kMiB);
  EXPECT_EQ(has(flags_of(of_device->host_data()), "hg"), has_huge_pages);
  EXPECT_FALSE(has(flags_of(of_device->host_data()), "lo"));
  EXPECT_FALSE(has(flags_of(unpinned->host_data()), "hg"));
  EXPECT_FALSE(has(flags_of(unpinned->host_data()), "lo"));
  const BlockRef pinned = pinned_.allocate(4 * kMiB);
  EXPECT_EQ(has(flags_of(pinned->host_data()), "lo"), pinned->is_locked());
  EXPECT_EQ(pinned_.stats().bytes_locked + pinned_.stats().bytes_not_locked, 4 * kMiB);
}

TEST_F(MemoryKindsTest, ReusesBlocksWithinTheirKind) {
  const auto address = [](Arena& arena) { return arena.allocate(3 * kMiB)->host_data(); };
  const std::byte* of_device = address(device_);
  const std::byte* pinned = address(pinned_);
  const std::byte* unpinned = address(unpinned_);
  EXPECT_EQ(address(unpinned_), unpinned);
  EXPECT_EQ(address(pinned_), pinned);
  EXPECT_EQ(address(device_), of_device);
}

TEST_F(MemoryKindsTest, CountsLocksAndReleasesThemWithThePages) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_limited_child(1 * kMiB,
                             [] {
                               Arena& arena = Arena::of_node(0, MemoryKind::kPinnedHost);
                               const int64_t before = arena.stats().bytes_locked;
                               {
                                 const BlockRef small = arena.allocate(page_bytes() + 900);
                                 if (!small->is_locked() || !has(flags_of(small->host_data()), "lo")) return 1;
                                 if (arena.stats().bytes_locked != before + 2 * page_bytes()) return 2;
                                 const BlockRef neighbour = arena.allocate(100);  // on the page that is locked
                                 if (arena.stats().bytes_locked != before + 2 * page_bytes()) return 3;
                               }
                               if (arena.stats().bytes_locked != before + 2 * page_bytes()) return 4;  // cached
                               Arena::trim_all();
                               if (arena.stats().bytes_locked != 0) return 5;
                               return has_page_lock_trouble() ? 6 : 0;
                             }),
            0);
}

TEST_F(MemoryKindsTest, AllocatesUnlockedMemoryAndWarnsOnce) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_limited_child(1 * kMiB,
                             [] {
                               Arena& arena = Arena::of_node(0, MemoryKind::kPinnedHost);
                               if (has_page_lock_trouble() || !page_lock_trouble().empty()) return 1;
                               const BlockRef big = arena.allocate(2 * kMiB);
                               if (big->is_locked() || has(flags_of(big->host_data()), "lo")) return 2;
                               std::memset(big->host_data(), 1, 2 * kMiB);
                               if (arena.stats().bytes_not_locked != 2 * kMiB || arena.stats().bytes_locked != 0)
                                 return 3;
                               const std::string text = page_lock_trouble();
                               if (text.find("2097152 bytes could not be locked") == std::string::npos) return 4;
                               if (text.find("1048576 bytes (RLIMIT_MEMLOCK)") == std::string::npos) return 5;
                               const BlockRef another = arena.allocate(5 * kMiB);
                               if (page_lock_trouble() != text || page_lock_limit() != kMiB) return 6;
                               const BlockRef small = arena.allocate(100);  // still room for this one
                               return small->is_locked() ? 0 : 7;
                             }),
            0);
}

TEST_F(MemoryKindsTest, EvictsCachedLocksForNewBlocks) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_limited_child(5 * kMiB,
                             [] {
                               Arena& arena = Arena::of_node(0, MemoryKind::kPinnedHost);
                               {
                                 const BlockRef first = arena.allocate(4 * kMiB);
                                 if (!first->is_locked()) return 1;
                               }
                               BlockRef second = arena.allocate(2 * kMiB);  // beside 4 MiB in the cache: too much
                               if (!second->is_locked()) return 2;
                               BlockRef third = arena.allocate(4 * kMiB);
                               if (third->is_locked()) return 3;
                               second = BlockRef();
                               const std::byte* place = third->host_data();
                               third = BlockRef();
                               third = arena.allocate(4 * kMiB);
                               if (third->host_data() != place || !third->is_locked()) return 4;
                               return arena.stats().bytes_not_locked == 0 ? 0 : 5;
                             }),
            0);
}

TEST_F(MemoryKindsTest, EvictsThePagesOfFreedSmallBlocks) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_limited_child(64 * 1024,
                             [] {
                               Arena& arena = Arena::of_node(0, MemoryKind::kPinnedHost);
                               const BlockRef kept = arena.allocate(100);
                               for (const int64_t bytes : {50'000, 40'000, 30'000, 50'000}) {
                                 if (!arena.allocate(bytes)->is_locked()) return 1;
                                 if (arena.stats().bytes_locked > 64 * 1024) return 2;
                               }
                               return kept->is_locked() && has(flags_of(kept->host_data()), "lo") ? 0 : 3;
                             }),
            0);
}

TEST_F(MemoryKindsTest, HasNoLocksInAForkedChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  const BlockRef big = pinned_.allocate(2 * kMiB);
  const BlockRef small = pinned_.allocate(100);
  const bool locked = small->is_locked();
  const pid_t child = fork();
  if (child == 0) {
    int result = 0;
    if (big->is_locked() || small->is_locked() || pinned_.stats().bytes_locked != 0) result = 1;
    if (pinned_.stats().bytes_not_locked != pinned_.stats().bytes_in_use) result = 2;
    if (has(flags_of(small->host_data()), "lo")) result = 3;
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(small->is_locked(), locked);
}

TEST_F(MemoryKindsTest, FreesEverythingAtOnceWithoutACache) {
  for (const MemoryKind kind : kMemoryKinds) {
    Arena& arena = Arena::of_node(0, kind, false);
    for (const int64_t bytes : {int64_t{0}, int64_t{10}, int64_t{5000}, 3 * kMiB}) {
      {
        const BlockRef block = arena.allocate(bytes);
        std::memset(block->host_data(), 1, static_cast<size_t>(bytes));
        EXPECT_EQ(arena.stats().bytes_mapped,
                  std::max<int64_t>((bytes + page_bytes() - 1) / page_bytes(), 1) * page_bytes());
      }
      EXPECT_EQ(arena.stats().bytes_mapped, 0);
      EXPECT_EQ(arena.stats().bytes_cached, 0);
      EXPECT_EQ(arena.stats().bytes_locked, 0);
    }
  }
}

TEST_F(MemoryKindsTest, AllocatesAllKindsFromThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        Arena& arena = Arena::of_node(0, kMemoryKinds[static_cast<size_t>(i % 3)], i % 2 == 0);
        const int64_t bytes = i % 20 == 0 ? 2 * kMiB : 100 + 37 * i;
        const BlockRef block = arena.allocate(bytes);
        std::memset(block->host_data(), t, static_cast<size_t>(bytes));
        if (block->host_data()[bytes - 1] != static_cast<std::byte>(t)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Memory, IsOneObjectPerDeviceAndKind) {
  const ClientRef client = Client::make(Machine::live(), {.num_devices = 2});
  Device& device = *client->device(DeviceId(1));
  Memory& pinned = device.memory(MemoryKind::kPinnedHost);
  EXPECT_EQ(&pinned, &device.memory(MemoryKind::kPinnedHost));
  EXPECT_EQ(&pinned.device(), &device);
  EXPECT_EQ(pinned.id(), 4);
  EXPECT_EQ(pinned.repr(), "PINNED_HOST_4");
  EXPECT_EQ(pinned.to_string(), "PinnedHostMemory(id=4, process_index=0, client=cpu)");
  EXPECT_EQ(device.memory(MemoryKind::kDevice).repr(), "CPU_DEVICE_3");
  EXPECT_EQ(device.memory(MemoryKind::kUnpinnedHost).to_string(),
            "UnpinnedHostMemorySpace(id=5, process_index=0, client=cpu)");
  EXPECT_EQ(pinned.space().kind(), MemoryKind::kPinnedHost);
}

TEST(Memory, CountsHostKindsSeparatelyFromTheDeviceLimit) {
  const ClientRef client = Client::make(Machine::live(), {.num_devices = 1, .bytes_limit = 100});
  Device& device = *client->device(DeviceId(0));
  EXPECT_FALSE(device.try_charge(101, MemoryKind::kDevice));
  EXPECT_TRUE(device.try_charge(101, MemoryKind::kUnpinnedHost));
  EXPECT_TRUE(device.try_charge(99, MemoryKind::kDevice));
  device.add_reserved(7, MemoryKind::kUnpinnedHost);
  const DeviceMemoryStats stats = device.memory(MemoryKind::kUnpinnedHost).stats();
  EXPECT_EQ(stats.bytes_in_use, 101);
  EXPECT_EQ(stats.peak_bytes_in_use, 101);
  EXPECT_EQ(stats.bytes_reserved, 7);
  EXPECT_EQ(stats.bytes_limit, device.memory_bytes());
  EXPECT_EQ(device.memory_stats().bytes_in_use, 99);
  EXPECT_EQ(device.memory_stats().bytes_reserved, 0);
  EXPECT_EQ(device.memory(MemoryKind::kPinnedHost).stats().bytes_in_use, 0);
  device.discharge(101, MemoryKind::kUnpinnedHost);
  device.discharge(99, MemoryKind::kDevice);
  EXPECT_EQ(device.memory(MemoryKind::kUnpinnedHost).stats().bytes_in_use, 0);
}

TEST(Memory, HasNoPagesWithoutDeviceMemory) {
  const ClientRef client = Client::make(Machine::live(), {.num_devices = 1, .compile_only = true});
  EXPECT_EQ(client->device(DeviceId(0))->memory(MemoryKind::kDevice).repr(), "CPU_DEVICE_0");
  EXPECT_THROW(client->device(DeviceId(0))->memory(MemoryKind::kDevice).space(), Unavailable);
}

TEST(Memory, NamesItsKinds) {
  const ClientRef client = Client::make(Machine::live(), {.num_devices = 1});
  const std::vector<Device*> devices{client->device(DeviceId(0))};
  EXPECT_EQ(memory_kind_of_device(*devices[0], "default"), MemoryKind::kDevice);
  EXPECT_EQ(memory_kind_of_device(*devices[0], "pinned"), MemoryKind::kPinnedHost);
  EXPECT_THROW(memory_kind_of_device(*devices[0], "hbm"), Unavailable);
  EXPECT_EQ(canonical_memory_kind(std::nullopt, devices), MemoryKind::kDevice);
  EXPECT_EQ(canonical_memory_kind("unpinned_host", devices), MemoryKind::kUnpinnedHost);
  EXPECT_EQ(canonical_memory_kind(std::nullopt, {}), std::nullopt);
  EXPECT_THROW(canonical_memory_kind("device", {}), InvalidArgument);
  EXPECT_THROW(canonical_memory_kind("hbm", devices), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
