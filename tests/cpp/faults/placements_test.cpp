// SPDX-License-Identifier: Apache-2.0
// Arrays where memory runs short: each work with each of its allocations failing, by the two of bytes and pages.
#include <cstring>
#include <numeric>

#include "../transfer/host_arrays.h"
#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/device/memory.h"
#include "artifex_devices/device/memory_window.h"
#include "artifex_devices/transfer/assemble.h"
#include "artifex_devices/transfer/cross_reshard.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_devices/transfer/value_digest.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

using namespace artifex_devices::test;

std::string text_of(const ByteArray& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// The bytes of an array.
std::string value_of(const ArrayRef& array) {
  const auto view = device_get(array);
  if (!is_dense(view->shape, view->byte_strides, itemsize(view->dtype))) return text_of(values(*view));
  return {static_cast<const char*>(view->data), static_cast<size_t>(array->nbytes())};
}

/// A world of 4 devices on 2 memories with workers of its own, and a value that is over the thresholds: copies of a few
/// KiB go over workers and go on after the call.
class Placements : public ::testing::Test {
 protected:
  Placements() {
    config().parallel_copy_bytes.store(4096);
    config().async_copy_bytes.store(4096);
    config().cache_bytes.store(int64_t{64} << 20);
    client_ = make_world(2, 4);  // the first one sets the lanes of this machine
    WorkerPool::process().configure({{.workers = 2, .bind = {}}, {.workers = 1, .bind = {}}});
    rows_ = named(client_, {4}, {"a", ""});
    columns_ = named(client_, {4}, {"", "a"});
    both_ = named(client_, {2, 2}, {"b", "a"});
    everywhere_ = named(client_, {4}, {"", ""});
    Random random(11);
    small_ = dense(random, {4, 8}, DType::kFloat32);
    big_ = dense(random, {64, 256}, DType::kFloat32);
  }

  void SetUp() override { usage_ = bytes_in_use(client_); }

  /// All of it with the first call failing, the second, ...; afterwards nothing lives and nothing is charged.
  void expect_safe(const char* name, const std::function<std::string()>& work) {
    for (const Call call : {Call::kNew, Call::kMap}) {
      const int64_t calls = fail_each(name, call, work);
      EXPECT_TRUE(calls > 0 || call != Call::kNew) << name;
      EXPECT_EQ(bytes_in_use(client_), usage_) << name;
      EXPECT_EQ(bytes_reserved(client_), Bytes(usage_.size(), 0)) << name;
      EXPECT_EQ(arena_bytes_in_use(client_), 0) << name;
      EXPECT_TRUE(live_arrays(client_.get()).empty()) << name;
    }
  }

  ClientRef client_;
  ShardingRef rows_, columns_, both_, everywhere_;
  HostView small_, big_;
  Bytes usage_;
};

TEST_F(Placements, HandleFaultsForHostArrays) {
  for (const ShardingRef& to : {rows_, columns_, both_, everywhere_}) {
    for (const HostView& value : {small_, big_}) {
      expect_safe("device_put", [&] { return value_of(device_put(value, to, true)); });
    }
  }
}

TEST_F(Placements, HandleFaultsForLargeBlocks) {
  Random random(12);
  const HostView large = dense(random, {512, 1024}, DType::kFloat32);
  const ShardingRef rows = named(client_, {2, 2}, {"a", ""});
  const ShardingRef columns = named(client_, {2, 2}, {"", "a"});
  for (const ShardingRef& to : {rows, columns}) {
    const ArrayRef array = device_put(large, to, true);
    EXPECT_EQ(arena_bytes_in_use(client_), 2 << 20);  // two blocks of 1 MiB, each shared by two devices
  }
  expect_safe("device_put and reshard of 2 MiB", [&] {
    const ArrayRef array = reshard(device_put(large, rows, true), columns, {});
    array->block_until_ready();
    return text_of(shard_values(array, Position(3)));
  });
}

TEST_F(Placements, HandleFaultsForLayoutsAndStrides) {
  Random random(5);
  const HostView source = strided(random, {16, 24}, DType::kInt16);
  const LayoutRef columns = std::make_shared<const artifex_devices::Layout>(Dims{0, 1});
  expect_safe("device_put with a layout", [&] { return value_of(device_put(source, rows_, true, columns)); });
}

TEST_F(Placements, HandleFaultsForManyDimensions) {
  Random random(7);
  HostView source = dense(random, Dims(10, 2), DType::kFloat32);
  std::ranges::reverse(source.byte_strides);
  const ShardingRef cut = named(client_, {2, 2}, {"a", "", "b"});
  expect_safe("device_put of ten dimensions", [&] { return value_of(device_put(source, cut, true)); });
}

TEST_F(Placements, HandleFaultsInPinnedAndUnpinnedMemory) {
  for (const MemoryKind kind : {MemoryKind::kPinnedHost, MemoryKind::kUnpinnedHost}) {
    const ShardingRef there = rows_->with_memory_kind(kind);
    const auto work = [&] { return value_of(device_put(big_, there, true)); };
    for (const Call call : {Call::kNew, Call::kMap}) {
      fail_each("device_put to a host's memory", call, work);
      for (Device* device : devices_of(client_)) EXPECT_EQ(device->memory(kind).stats().bytes_in_use, 0);
    }
  }
}

TEST_F(Placements, HandleFaultsForAliasedMemory) {
  const ShardingRef one = SingleDeviceSharding::make(client_->device(DeviceId(1)));
  expect_safe("device_put without a copy", [&] { return value_of(device_put_alias(big_, one, true)); });
}

TEST_F(Placements, HandleFaultsOfEveryMove) {
  const std::vector<std::pair<ShardingRef, ShardingRef>> ways = {
      {rows_, columns_}, {columns_, both_}, {both_, everywhere_}, {everywhere_, rows_}, {rows_, rows_}};
  for (const auto& [from, to] : ways) {
    for (const HostView& value : {small_, big_}) {
      for (const bool donate : {false, true}) {
        expect_safe("reshard", [&, &source = from, &target = to] {
          const ArrayRef before = device_put(value, source, true);
          const ArrayRef after = reshard(before, target, {.donate = donate});
          after->block_until_ready();
          EXPECT_EQ(before->is_deleted(), donate);
          return value_of(after);
        });
      }
    }
  }
}

TEST_F(Placements, KeepTheSourceIntactWhenAMoveFails) {
  const ArrayRef before = device_put(big_, rows_, true);
  const std::string value = value_of(before);
  for (int64_t n = 1;; ++n) {
    int64_t calls = 0;
    bool is_donated = true;
    try {
      const Failing failing(Call::kNew, n, true);
      try {
        const ArrayRef after = reshard(before, columns_, {.donate = true});
        after->block_until_ready();
      } catch (...) {
        is_donated = before->is_deleted();
        calls = failing.calls();
        throw;
      }
      calls = failing.calls();
    } catch (const std::bad_alloc&) {
    } catch (const OutOfMemory&) {
    }
    if (before->is_deleted()) {
      EXPECT_TRUE(is_donated);
      break;
    }
    ASSERT_EQ(value_of(before), value) << "call " << n << " of " << calls;
  }
}

TEST_F(Placements, HandleFaultsForShardData) {
  expect_safe("shard_data", [&] {
    const ArrayRef whole = device_put(big_, both_, true);
    const ArrayRef first = whole->shard_data(Position(0));
    const ArrayRef last = whole->shard_data(Position(3));
    return value_of(first) + value_of(last);
  });
}

TEST_F(Placements, HandleFaultsOfAsynchronousReads) {
  for (const HostView& value : {small_, big_}) {
    expect_safe("copy_to_host_async", [&] {
      const ArrayRef array = device_put(value, columns_, true);
      const auto view = device_get_async(array);
      wait_for(view->ready);
      return text_of(values(*view));
    });
  }
}

TEST_F(Placements, HandleFaultsOfAssembly) {
  expect_safe("assemble", [&] {
    Assembly assembly{.operation = "assemble", .shape = Dims{64, 256}, .sharding = rows_, .parts = {}, .dtype = {}};
    for (int64_t i = 0; i < 4; ++i) {
      HostView part = big_;
      part.shape = {16, 256};
      part.data = static_cast<std::byte*>(big_.data) + i * 16 * 256 * 4;
      assembly.parts.push_back(
          {device_put(part, SingleDeviceSharding::make(client_->device(DeviceId(i))), true), "", true});
    }
    return value_of(assemble(std::move(assembly)));
  });
  expect_safe("shards that are written one by one", [&] {
    ShardWriter writer({64, 256}, DType::kFloat32, everywhere_, "make_array_from_callback");
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(writer.write(Position(i), big_));
    return value_of(writer.finish());
  });
}

TEST_F(Placements, HandleFaultsOfMessages) {
  expect_safe("CrossReshard", [&] {
    CrossReshard cross(device_put(big_, rows_, true), columns_, {});
    cross.begin();
    return cross.identity() + value_of(cross.finish());
  });
}

TEST_F(Placements, HandleFaultsOfErrorsOverTheLimit) {
  const ClientRef tight = make_world(2, 4, 1024);
  const ShardingRef there = named(tight, {4}, {"a", ""});
  expect_safe("the error of a full device", [&] {
    const ArrayRef held = device_put(small_, there, true);
    return fmt::format("{} {}", error_of<OutOfMemory>([&] { device_put(big_, there, true); }),
                       live_arrays(tight.get()).size());
  });
}

TEST_F(Placements, HandleFaultsInPreallocatedMemory) {
  expect_safe("preallocate", [&] {
    Arena& arena = client_->arena(ArenaIndex(0));
    const std::shared_ptr<void> reserve = arena.preallocate(int64_t{4} << 20, "test");
    const int64_t taken = arena.stats().bytes_preallocated;
    const BlockRef block = arena.allocate(int64_t{2} << 20);
    return fmt::format("{} {}", taken, block->bytes());
  });
}

TEST_F(Placements, HandleFaultsOfShortLivedWorlds) {
  const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
  const auto work = [&] {
    const ClientRef world = Client::make(machine, {.num_devices = 4});
    const ShardingRef sharding = named(world, {2, 2}, {"ab", ""});
    return sharding->to_string() + value_of(device_put(big_, sharding, true));
  };
  for (const Call call : {Call::kNew, Call::kMap}) fail_each("Client::make", call, work);
}

}  // namespace
}  // namespace artifex_devices::faults
