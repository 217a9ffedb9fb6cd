// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "artifex_devices/base/error.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

using test::arena_bytes_in_use;
using test::Bytes;
using test::bytes_in_use;
using test::bytes_reserved;
using test::error_of;
using test::everywhere;
using test::make_world;
using test::named;

constexpr DType kF32 = DType::kFloat32;

std::shared_ptr<Storage> allocate(const ShardingRef& sharding, const Dims& shape, DType dtype = kF32) {
  return Storage::allocate(sharding, sharding->domains(shape, "test"), dtype, "test");
}

std::shared_ptr<Storage> adopt(const ShardingRef& sharding, const Dims& shape, BufferRefs buffers) {
  return Storage::adopt(sharding, sharding->domains(shape, "test"), kF32, std::move(buffers), "test");
}

TEST(StorageLayout, PlacesSmallShardsInOneSlabInOrder) {
  const auto storage = allocate(named(make_world(1, 8), {8}, {"a"}), {8, 16});
  int64_t stride = 0;
  std::byte* slab = storage->slab(&stride);
  ASSERT_NE(slab, nullptr);
  EXPECT_EQ(stride, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slab) % 64, 0u);
  ASSERT_EQ(storage->buffer_count(), 8);
  for (int64_t b = 0; b < 8; ++b) {
    EXPECT_EQ(storage->device_data(BufferId(b)), slab + 64 * b);
    EXPECT_EQ(storage->buffer(BufferId(b)).host_data(), slab + 64 * b);
    EXPECT_EQ(storage->buffer(BufferId(b)).block, storage->buffer(BufferId(0)).block);
    EXPECT_EQ(storage->buffer_bytes(BufferId(b)), 64);
  }
  EXPECT_EQ(storage->buffer(BufferId(0)).block->bytes(), 512);
}

TEST(StorageLayout, AlignsSlabStridesTo64Bytes) {
  const auto storage = allocate(named(make_world(1, 4), {4}, {"a"}), {4 * 17});
  int64_t stride = 0;
  ASSERT_NE(storage->slab(&stride), nullptr);
  EXPECT_EQ(storage->buffer_bytes(BufferId(3)), 68);
  EXPECT_EQ(stride, 128);
}

TEST(StorageLayout, GivesShardsFrom256KiBTheirOwnBlocks) {
  const auto sharding = named(make_world(1, 4), {4}, {"a"});
  int64_t stride = 0;
  EXPECT_NE(allocate(sharding, {4, 64 * 1024 - 1})->slab(&stride), nullptr);
  const auto storage = allocate(sharding, {4, 64 * 1024});
  EXPECT_EQ(storage->slab(&stride), nullptr);
  std::set<std::byte*> starts;
  for (int64_t b = 0; b < 4; ++b) {
    EXPECT_EQ(storage->buffer(BufferId(b)).offset, 0);
    EXPECT_EQ(storage->buffer(BufferId(b)).block->bytes(), 256 << 10);
    starts.insert(storage->device_data(BufferId(b)));
  }
  EXPECT_EQ(starts.size(), 4u);
}

TEST(StorageLayout, GivesASingleBufferASlabOfItsSize) {
  const auto world = make_world(1, 2);
  const auto storage = allocate(SingleDeviceSharding::make(world->device(DeviceId(1))), {3});
  int64_t stride = 0;
  EXPECT_EQ(storage->slab(&stride), storage->device_data(BufferId(0)));
  EXPECT_EQ(storage->buffer(BufferId(0)).block->bytes(), 12);
}

TEST(StorageLayout, UsesOneSlabPerArena) {
  const auto world = make_world(2, 4);  // devices 0, 1 on the first memory, 2, 3 on the second
  const auto storage = allocate(named(world, {4}, {"a"}), {4, 5});
  int64_t stride = 0;
  EXPECT_EQ(storage->slab(&stride), nullptr);
  EXPECT_EQ(storage->buffer(BufferId(0)).block, storage->buffer(BufferId(1)).block);
  EXPECT_EQ(storage->buffer(BufferId(2)).block, storage->buffer(BufferId(3)).block);
  EXPECT_NE(storage->buffer(BufferId(0)).block, storage->buffer(BufferId(2)).block);
  EXPECT_EQ(storage->device_data(BufferId(1)) - storage->device_data(BufferId(0)), 64);
  EXPECT_EQ(storage->device_data(BufferId(3)) - storage->device_data(BufferId(2)), 64);
}

TEST(StorageLayout, SharesOneBufferBetweenReplicasInAnArena) {
  EXPECT_EQ(allocate(named(make_world(1, 8), {8}, {}), {16})->buffer_count(), 1);
  EXPECT_EQ(allocate(named(make_world(2, 8), {8}, {}), {16})->buffer_count(), 2);
  EXPECT_EQ(allocate(named(make_world(2, 8), {2, 4}, {"b"}), {16})->buffer_count(), 8);
  EXPECT_EQ(allocate(named(make_world(2, 8), {4, 2}, {"b"}), {16})->buffer_count(), 4);
}

TEST(StorageLayout, SizesUnevenShardsByTheirElements) {
  const auto storage = allocate(named(make_world(1, 4), {4}, {"a"}, Uneven::kLastShort), {5});
  EXPECT_EQ(storage->buffer_bytes(BufferId(0)), 8);
  EXPECT_EQ(storage->buffer_bytes(BufferId(1)), 8);
  EXPECT_EQ(storage->buffer_bytes(BufferId(2)), 4);
  EXPECT_EQ(storage->buffer_bytes(BufferId(3)), 0);
  EXPECT_EQ(storage->bytes().total(), 20);
}

TEST(StorageLayout, GivesEmptyArraysBuffers) {
  const auto storage = allocate(named(make_world(1, 4), {4}, {"a"}), {0, 7});
  EXPECT_EQ(storage->buffer_count(), 4);
  EXPECT_EQ(storage->buffer_bytes(BufferId(3)), 0);
  EXPECT_NE(storage->buffer(BufferId(3)).host_data(), nullptr);
}

TEST(StorageCharge, ChargesEveryDeviceForItsShardAndReplicas) {
  const auto world = make_world(1, 8);
  {
    const auto cut = allocate(named(world, {8}, {"a"}), {8, 16});
    EXPECT_EQ(bytes_in_use(world), everywhere(world, 64));
    const auto copied = allocate(named(world, {8}, {}), {8, 16});
    EXPECT_EQ(bytes_in_use(world), everywhere(world, 64 + 512));
    EXPECT_EQ(copied->bytes().total(), 4096);
    EXPECT_EQ(copied->buffer(BufferId(0)).block->bytes(), 512);
    const auto uneven = allocate(named(world, {8}, {"a"}, Uneven::kLastShort), {12});
    EXPECT_EQ(bytes_in_use(world), (Bytes{584, 584, 584, 584, 584, 584, 576, 576}));
  }
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_EQ(world->device(DeviceId(0))->memory_stats().peak_bytes_in_use, 584);
  EXPECT_EQ(world->device(DeviceId(0))->memory_stats().num_allocs, 3);
}

TEST(StorageCharge, ReportsLiveArraysAndChargesNothingOverTheLimit) {
  const auto world = make_world(1, 4);
  world->device(DeviceId(2))->set_bytes_limit(1000);
  const auto sharding = named(world, {4}, {"a"});
  const auto first = allocate(sharding, {4, 100});
  EXPECT_EQ(error_of<OutOfMemory>([&] { allocate(sharding, {4, 200}); }),
            "RESOURCE_EXHAUSTED: test: out of memory on cpu:2: 800 bytes (800 bytes) asked for, 400 bytes (400 bytes) "
            "in use, limit 1000 bytes (1000 bytes); biggest live arrays: none; delete arrays that are no longer "
            "needed, raise the limit, or shard over more devices");
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 400));
  EXPECT_EQ(allocate(sharding, {4, 150})->buffer_count(), 4);  // exactly the limit
}

TEST(StorageCharge, ChargesNothingWhenTheSystemHasNoMemory) {
  const auto world = make_world(1, 4);
  const auto sharding = named(world, {4}, {"a"});
  const int64_t before = arena_bytes_in_use(world);
  const std::string text = error_of<OutOfMemory>([&] { allocate(sharding, {4, int64_t{1} << 50}); });
  EXPECT_TRUE(text.starts_with("RESOURCE_EXHAUSTED: test: no memory for 4503599627370496 bytes (4.0 PiB) on cpu:0: "))
      << text;
  EXPECT_NE(text.find("delete arrays that are no longer needed"), std::string::npos) << text;
  EXPECT_EQ(text.find("RESOURCE_EXHAUSTED", 1), std::string::npos);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_EQ(arena_bytes_in_use(world), before);
}

TEST(StorageCharge, RefusesSizesBeyond63Bits) {
  const auto world = make_world(1, 2);
  const auto sharding = named(world, {2}, {"a"});
  EXPECT_EQ(error_of<InvalidArgument>([&] { allocate(sharding, {2, int64_t{1} << 61}); }),
            "test: shards of shape (1, 2305843009213693952) of float32 on 2 devices are more bytes than fit 63 bits; "
            "use smaller sizes");
  EXPECT_THROW(allocate(sharding, {0, int64_t{1} << 40, int64_t{1} << 40}), InvalidArgument);
  EXPECT_THROW(allocate(sharding, {int64_t{1} << 40, int64_t{1} << 40, 0}), InvalidArgument);
  // The bytes of one device fit, those of all do not.
  EXPECT_THROW(allocate(sharding, {2, int64_t{1} << 60}), InvalidArgument);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(StorageCharge, RefusesDevicesOfAClosedClient) {
  const ClientRef world = make_world(1, 2);
  const auto before = allocate(named(world, {2}, {"a"}), {2});
  world->close();
  EXPECT_EQ(error_of<Unavailable>([&] { allocate(named(world, {2}, {"a"}), {2}); }),
            "test: the client of cpu:0 was closed; expected devices of an open client; create another client, or use "
            "devices()");
  EXPECT_EQ(bytes_in_use(world), (Bytes{4, 4}));
}

TEST(StorageCharge, RefusesCompileOnlyDevices) {
  ClientOptions options;
  options.num_devices = 2;
  options.compile_only = true;
  const auto world = Client::make(Machine::from_synthetic("pack:1 [numa] core:2 pu:1"), options);
  EXPECT_EQ(error_of<Unavailable>([&] { allocate(named(world, {2}, {"a"}), {2}); }),
            "test: cpu:0 has no memory: it is for planning only, of a simulated cluster or a topology; place data on "
            "devices of this machine");
}

TEST(StorageAdopt, AdoptsGivenBuffersAndAllocatesTheOthers) {
  const auto world = make_world(1, 3);
  const auto sharding = named(world, {3}, {"a"});
  const auto other = allocate(sharding, {3});
  const auto storage = adopt(sharding, {3}, BufferRefs({{}, other->buffer(BufferId(2)), {}}));
  EXPECT_EQ(storage->device_data(BufferId(1)), other->device_data(BufferId(2)));
  EXPECT_EQ(storage->buffer(BufferId(0)).block, storage->buffer(BufferId(2)).block);
  EXPECT_EQ(storage->device_data(BufferId(2)) - storage->device_data(BufferId(0)), 64);
  EXPECT_FALSE(storage->buffer(BufferId(1)).block->is_foreign());
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 8));
}

TEST(StorageAdopt, KeepsForeignMemoryUntilTheLastUse) {
  const auto world = make_world(1, 1);
  int released = 0;
  float value = 7;
  auto storage = adopt(SingleDeviceSharding::make(world->device(DeviceId(0))), {1},
                       BufferRefs({{foreign_block(&value, 4, [&] { ++released; }), 0}}));
  EXPECT_TRUE(storage->buffer(BufferId(0)).block->is_foreign());
  BufferRef view = storage->buffer(BufferId(0));
  EXPECT_EQ(view.host_data(), reinterpret_cast<std::byte*>(&value));
  storage->delete_all();
  storage.reset();
  EXPECT_EQ(released, 0);
  view = {};
  EXPECT_EQ(released, 1);
}

TEST(StorageAdopt, RefusesWrongCountsAndShortBuffers) {
  const auto world = make_world(1, 2);
  const auto sharding = named(world, {2}, {"a"});
  const auto other = allocate(sharding, {2});
  EXPECT_EQ(error_of<InvalidArgument>([&] { adopt(sharding, {2}, BufferRefs({other->buffer(BufferId(0))})); }),
            "test: 1 buffers for a sharding that has 2; give one for each distinct shard of an arena");
  EXPECT_EQ(error_of<InvalidArgument>(
                [&] { adopt(sharding, {64}, BufferRefs({other->buffer(BufferId(0)), other->buffer(BufferId(1))})); }),
            "test: buffer 0 has 68 bytes from its offset on; expected 128");
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 4));
}

TEST(StorageHandles, KeepOnlyTheBlockOfALargeShard) {
  const auto world = make_world(1, 4);
  const int64_t before = arena_bytes_in_use(world);
  const auto storage = allocate(named(world, {4}, {"a"}), {4, 1 << 18});
  storage->retain({});
  storage->retain(Position(2));
  storage->release({});
  EXPECT_EQ(bytes_in_use(world), (Bytes{0, 0, 1 << 20, 0}));
  EXPECT_EQ(bytes_reserved(world), everywhere(world, 0));
  EXPECT_EQ(arena_bytes_in_use(world) - before, 1 << 20);
  EXPECT_EQ(storage->buffer(BufferId(2)).block->bytes(), 1 << 20);
  EXPECT_EQ(storage->deletion(), Deletion::kNone);
  storage->release(Position(2));
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_EQ(arena_bytes_in_use(world), before);
}

TEST(StorageHandles, ReserveTheSlabOfASmallShard) {
  const auto world = make_world(2, 4);
  const auto storage = allocate(named(world, {4}, {"a"}), {4, 16});
  storage->retain({});
  storage->retain(Position(0));
  storage->retain(Position(0));
  storage->release({});
  EXPECT_EQ(bytes_in_use(world), (Bytes{64, 0, 0, 0}));
  EXPECT_EQ(bytes_reserved(world), (Bytes{0, 64, 0, 0}));  // the slab of the other arena is gone
  storage->release(Position(0));
  EXPECT_EQ(bytes_in_use(world), (Bytes{64, 0, 0, 0}));
  storage->release(Position(0));
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_EQ(bytes_reserved(world), everywhere(world, 0));
}

TEST(StorageHandles, KeepTheBufferThatReplicasShare) {
  const auto world = make_world(1, 4);
  const auto storage = allocate(named(world, {2, 2}, {"b"}), {2, 1 << 18});
  const int64_t with_both = arena_bytes_in_use(world);
  storage->retain({});
  storage->retain(Position(0));
  storage->retain(Position(2));  // holds the same tile as 0
  storage->release({});
  EXPECT_EQ(arena_bytes_in_use(world), with_both - (1 << 20));
  EXPECT_EQ(bytes_in_use(world), (Bytes{1 << 20, 0, 1 << 20, 0}));
  storage->release(Position(0));
  EXPECT_EQ(bytes_in_use(world), (Bytes{0, 0, 1 << 20, 0}));
  EXPECT_EQ(arena_bytes_in_use(world), with_both - (1 << 20));
  storage->release(Position(2));
  EXPECT_EQ(arena_bytes_in_use(world), with_both - (2 << 20));
}

TEST(StorageHandles, AllowShardsToBeReleasedFirst) {
  const auto world = make_world(1, 2);
  const auto storage = allocate(named(world, {2}, {"a"}), {2});
  storage->retain({});
  storage->retain(Position(1));
  storage->release(Position(1));
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 4));
  storage->release({});
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_THROW(storage->buffer(BufferId(0)), DeletedArray);
}

TEST(StorageDelete, EndsChargesAtOnceAndFreesMemoryWithTheLastView) {
  const auto world = make_world(1, 2);
  const int64_t before = arena_bytes_in_use(world);
  const auto storage = allocate(named(world, {2}, {"a"}), {2, 1 << 20});
  storage->retain({});
  storage->retain(Position(0));
  std::memset(storage->device_data(BufferId(0)), 42, 8);
  BufferRef view = storage->buffer(BufferId(0));
  storage->delete_all();
  storage->delete_all(Deletion::kDonation);
  EXPECT_EQ(storage->deletion(), Deletion::kToSystem);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_EQ(arena_bytes_in_use(world) - before, 4 << 20);
  EXPECT_EQ(view.host_data()[7], std::byte{42});
  EXPECT_EQ(error_of<DeletedArray>([&] { storage->buffer(BufferId(1)); }),
            "buffer: the Array was deleted; create it again, or delete it only after its last use");
  view = {};
  EXPECT_EQ(arena_bytes_in_use(world), before);
  storage->retain(Position(1));
  storage->release(Position(1));
  storage->release(Position(0));
  storage->release({});
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(StorageDelete, ReturnsLargeBlocksToTheSystemByDefault) {
  const auto world = make_world(1, 1);
  const auto sharding = SingleDeviceSharding::make(world->device(DeviceId(0)));
  Arena::trim_all();
  const int64_t empty = Arena::total_cached_bytes();
  allocate(sharding, {1 << 20})->delete_all();
  EXPECT_EQ(Arena::total_cached_bytes(), empty);
  allocate(sharding, {1 << 20})->delete_all(Deletion::kToCache);
  EXPECT_EQ(Arena::total_cached_bytes(), empty + (4 << 20));
  Arena::trim_all();
}

TEST(StorageHostValue, IsCachedUntilDeletion) {
  const auto world = make_world(1, 1);
  const auto storage = allocate(SingleDeviceSharding::make(world->device(DeviceId(0))), {1});
  storage->retain({});
  const auto value = storage->host_value().put(std::make_shared<const HostView>());
  EXPECT_EQ(storage->host_value().get(), value);
  storage->delete_all();
  EXPECT_EQ(storage->host_value().get(), nullptr);
}

TEST(StorageHostValue, EndsWithTheGlobalArray) {
  const auto world = make_world(1, 2);
  const auto storage = allocate(named(world, {2}, {"a"}), {2});
  storage->retain({});
  storage->retain(Position(0));
  storage->host_value().put(std::make_shared<const HostView>());
  storage->release({});
  EXPECT_EQ(storage->host_value().get(), nullptr);
  EXPECT_TRUE(storage->buffer(BufferId(0)).block);
}

TEST(StorageThreads, ReadValidOrDeletedBuffersDuringConcurrentDeletion) {
  const auto world = make_world(2, 4);
  const auto cut = named(world, {4}, {"a"});
  for (int round = 0; round < 200; ++round) {
    const auto storage = allocate(cut, {4, round % 2 ? 16 : 1 << 17});
    storage->retain({});
    for (int64_t b = 0; b < 4; ++b) std::memset(storage->device_data(BufferId(b)), 5, 64);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int64_t b = 0; b < 4; ++b) {
      storage->retain({});  // a thread that takes a shard holds the storage
      threads.emplace_back([&, b] {
        storage->retain(Position(b));
        storage->release({});
        try {
          for (int i = 0; i < 20; ++i) {
            const BufferRef buffer = storage->buffer(BufferId(b));
            if (buffer.host_data()[63] != std::byte{5}) ++wrong;
          }
        } catch (const DeletedArray&) {
        }
        storage->release(Position(b));
      });
    }
    threads.emplace_back([&] { storage->release({}); });
    if (round % 4 < 3) threads.emplace_back([&] { storage->delete_all(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    ASSERT_EQ(bytes_in_use(world), everywhere(world, 0));
    ASSERT_EQ(bytes_reserved(world), everywhere(world, 0));
  }
}

}  // namespace
}  // namespace artifex_devices
