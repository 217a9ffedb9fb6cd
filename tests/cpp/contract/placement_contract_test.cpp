// SPDX-License-Identifier: Apache-2.0
// Putting, reading and moving arrays.
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/adopt.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/place.h"
#include "artifex_devices/transfer/planned_copies.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_devices/transfer/transfer_recording.h"
#include "backends.h"

namespace artifex_devices {
namespace {

using test::Random;
using test::values;

/// Sets from which sizes copies use several workers and continue after their call, and how many copies are listed.
class CopySizes {
 public:
  CopySizes(int64_t parallel, int64_t async, int64_t listed)
      : parallel_(config().parallel_copy_bytes.exchange(parallel)),
        async_(config().async_copy_bytes.exchange(async)),
        listed_(PlannedCopies::most_listed.exchange(listed)) {}
  CopySizes(const CopySizes&) = delete;
  CopySizes& operator=(const CopySizes&) = delete;
  ~CopySizes() {
    config().parallel_copy_bytes = parallel_;
    config().async_copy_bytes = async_;
    PlannedCopies::most_listed = listed_;
  }

 private:
  int64_t parallel_;
  int64_t async_;
  int64_t listed_;
};

constexpr int64_t kHuge = int64_t{1} << 40;

class PlacementContract : public test::Contract {};

TEST_P(PlacementContract, ReadsBackWhatWasPut) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const CopySizes sizes(round % 2 == 0 ? kHuge : 0, kHuge, kHuge);
    const auto world = make(static_cast<int>(test::pick(random, 1, 3)), 8);
    const Dims shape = test::random_shape(random);
    const DType dtype = test::random_dtype(random);
    const HostView source = round % 3 == 0 ? test::dense(random, shape, dtype) : test::strided(random, shape, dtype);
    const auto [sharding, text] = test::random_layout(random, world, shape, round % 5 == 0);
    SCOPED_TRACE(to_string(shape) + " " + std::string(name(dtype)) + " " + text);
    const ArrayRef array = device_put(source, sharding, true);
    test::expect_shards(array, source);
    ASSERT_EQ(values(*device_get(array)), values(source));
    for (int64_t p = 0; p < sharding->num_devices(); ++p) {
      const ArrayRef shard = array->shard_data(Position(p));
      ASSERT_EQ(values(*device_get(shard)), test::shard_values(array, Position(p))) << "position " << p;
    }
  }
}

TEST_P(PlacementContract, StoresEveryOrderOfDimensions) {
  Random random(2);
  const auto world = make(2, 4);
  const HostView source = test::dense(random, {4, 6, 2}, DType::kInt16);
  for (const char* order : {"{2,1,0}", "{0,1,2}", "{1,0,2}"}) {
    const LayoutRef layout = stored_layout(Layout::parse(order), 3, "test");
    for (const auto& sharding : {test::named(world, {4}, {"a"}), test::named(world, {2, 2}, {"", "a", "b"}),
                                 ShardingRef(SingleDeviceSharding::make(world->device(DeviceId(3))))}) {
      const ArrayRef array = device_put(source, sharding, true, layout);
      ASSERT_EQ(values(*device_get(array)), values(source));
      ASSERT_EQ(values(*device_get(row_major(array))), values(source));
    }
  }
}

TEST_P(PlacementContract, MovesThePlannedBytes) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const CopySizes sizes(round % 4 == 0 ? kHuge : 0, round % 4 == 3 ? 0 : kHuge, round % 3 == 0 ? 0 : kHuge);
    const auto world = make(static_cast<int>(test::pick(random, 1, 4)), 8);
    const Dims shape = test::random_shape(random);
    const HostView source = test::dense(random, shape, test::random_dtype(random));
    const auto [from, from_text] = test::random_layout(random, world, shape, round % 5 == 0);
    const auto [to, to_text] = test::random_layout(random, world, shape, round % 5 == 0);
    SCOPED_TRACE(to_string(shape) + " " + from_text + " -> " + to_text);
    const ArrayRef array = device_put(source, from, true);
    const ReshardPlan plan = plan_of_reshard(*array, *to);
    const TransferRecording recording;
    const ArrayRef result = reshard(array, to, {.force_copy = round % 7 == 0});
    result->block_until_ready();
    const int64_t planned = plan.bytes_copied() + (round % 7 == 0 ? plan.bytes_reused() : 0);
    EXPECT_EQ(test::bytes_of(recording), planned);
    test::expect_shards(result, source);
    ASSERT_EQ(values(*device_get(result)), values(source));
  }
}

TEST_P(PlacementContract, WaitsForDeferredCopies) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    ClientOptions options;
    options.backend = GetParam().make();
    options.num_devices = 8;
    options.seed = seed;
    const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
    if (GetParam().name == "cuda") {
      EXPECT_EQ(
          test::error_of<InvalidArgument>([&] { Client::make(machine, options); }),
          fmt::format("make_client: seed {} is given for CUDA devices, whose driver runs the copies; expected CPU "
                      "devices or emulated GPUs; leave the seed out",
                      seed));
      continue;
    }
    const ClientRef world = Client::make(machine, options);
    const HostView source = test::dense(random, {8, 16}, DType::kFloat32);
    ArrayRef array = device_put(source, test::named(world, {8}, {"a"}), true);
    std::vector<ArrayRef> moved;
    for (int step = 0; step < 6; ++step) {
      const auto [to, text] = test::random_layout(random, world, source.shape, false);
      array = reshard(array, to, {.force_copy = true});
      moved.push_back(array);
    }
    EXPECT_FALSE(moved.back()->ready_event()->is_set());
    const std::byte* memory = moved.front()->storage()->device_data(BufferId(0));
    EXPECT_EQ(memory[0], std::byte{0xA5}) << "memory is not written before a thread waits";
    const auto host = device_get_async(moved[2]);
    EXPECT_EQ(values(*device_get(moved.back())), values(source)) << "seed " << seed;
    wait_for(host->ready);
    EXPECT_EQ(values(*host), values(source)) << "seed " << seed;
    for (const ArrayRef& each : moved) EXPECT_EQ(values(*device_get(each)), values(source)) << "seed " << seed;
  }
}

TEST_P(PlacementContract, MovesBetweenMemoryKinds) {
  Random random(4);
  const auto world = make(2, 4);
  const HostView source = test::dense(random, {8, 16}, DType::kFloat32);
  const ShardingRef rows = test::named(world, {4}, {"a"});
  const ArrayRef array = device_put(source, rows, true);
  for (const MemoryKind kind : {MemoryKind::kPinnedHost, MemoryKind::kUnpinnedHost}) {
    const ArrayRef host = reshard(array, rows->with_memory_kind(kind), {});
    EXPECT_TRUE(host->is_host_readable());
    ASSERT_EQ(values(*device_get(host)), values(source));
    const ArrayRef back = reshard(host, rows, {});
    EXPECT_EQ(back->is_host_readable(), GetParam().is_host_readable);
    test::expect_shards(back, source);
  }
}

TEST_P(PlacementContract, MovesBetweenWorldsThroughTheHost) {
  Random random(5);
  const auto world = make(1, 4);
  const auto cpus = test::make_world(1, 2);
  const HostView source = test::dense(random, {8, 3}, DType::kInt32);
  const ArrayRef array = device_put(source, test::named(world, {4}, {"a"}), true);
  const ArrayRef there = place(array, {.sharding = test::named(cpus, {2}, {"a"}), .committed = true});
  ASSERT_EQ(values(*device_get(there)), values(source));
  const ArrayRef back = place(there, {.sharding = test::named(world, {2}, {"a"}), .committed = true});
  test::expect_shards(back, source);
}

TEST_P(PlacementContract, DeliversErrorsOfTheSource) {
  const auto world = make(2, 8);
  const ShardingRef rows = test::named(world, {8}, {"a"});
  auto ready = std::make_shared<Event>();
  auto storage = Storage::allocate(rows, rows->domains({8, 8}, "test"), DType::kFloat32, "test");
  const ArrayRef source = Array::make({8, 8}, DType::kFloat32, rows, std::move(storage), ready, true);
  const ArrayRef moved = reshard(source, test::named(world, {8}, {"", "a"}), {});
  const auto read = device_get_async(moved);
  ready->set_error(std::make_exception_ptr(InvalidArgument("the disk is gone")));
  EXPECT_EQ(test::error_of<InvalidArgument>([&] { moved->block_until_ready(); }), "the disk is gone");
  EXPECT_EQ(test::error_of<InvalidArgument>([&] { wait_for(read->ready); }), "the disk is gone");
}

TEST_P(PlacementContract, CopiesPartsIntoMemoryOfTheDevice) {
  Random random(6);
  const auto world = make(1, 2);
  const ShardingRef rows = test::named(world, {2}, {"a"});
  const HostView source = test::dense(random, {4, 3}, DType::kFloat64);
  std::vector<AdoptedPart> parts;
  for (int64_t i = 0; i < 2; ++i) {
    HostView part = source;
    part.shape = {2, 3};
    part.data = static_cast<std::byte*>(source.data) + i * 48;
    parts.push_back({part});
  }
  const ArrayRef array = adopt({4, 3}, DType::kFloat64, rows, std::move(parts), "test");
  test::expect_shards(array, source);
}

INSTANTIATE_ON_EVERY_BACKEND(PlacementContract);

}  // namespace
}  // namespace artifex_devices
