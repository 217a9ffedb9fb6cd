// SPDX-License-Identifier: Apache-2.0
// Who can read the memory of a device, what is counted, and when it is freed.
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/memory.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/dlpack.h"
#include "artifex_devices/transfer/place.h"
#include "artifex_devices/transfer/reshard.h"
#include "backends.h"

namespace artifex_devices {
namespace {

using test::error_of;
using test::Random;
using test::values;

class MemoryContract : public test::Contract {
 protected:
  MemoryContract() : world_(make(1, 4)), rows_(test::named(world_, {4}, {"a"})) {}

  Random random_{7};
  ClientRef world_;
  ShardingRef rows_;
  HostView source_ = test::dense(random_, {8, 16}, DType::kFloat32);
};

TEST_P(MemoryContract, IsReadByTheHostOnlyWhereTheBackendAllowsIt) {
  const ArrayRef array = device_put(source_, rows_, true);
  const BufferRef buffer = array->storage()->buffer(BufferId(1));
  EXPECT_EQ(array->is_host_readable(), GetParam().is_host_readable);
  EXPECT_EQ(buffer.block->is_host_readable(), GetParam().is_host_readable);
  if (GetParam().is_host_readable) {
    EXPECT_EQ(buffer.host_data(), buffer.device_data());
    EXPECT_EQ(buffer.block->address(), reinterpret_cast<uint64_t>(buffer.block->host_data()));
  } else {
    EXPECT_EQ(error_of<Unavailable>([&] { static_cast<void>(buffer.host_data()); }),
              fmt::format("host_data: the memory at {:#x} belongs to a GPU, which the host cannot read; expected host "
                          "memory; copy it by device_get first",
                          buffer.block->address()));
  }
}

TEST_P(MemoryContract, FaultsWhereTheHostReadsAnAddressThatIsNotItsOwn) {
  const ArrayRef array = device_put(source_, rows_, true);
  const Block& block = *array->storage()->buffer(BufferId(0)).block;
  const auto* data = reinterpret_cast<const volatile char*>(block.address());
  if (GetParam().is_host_readable) {
    EXPECT_EQ(*data, *static_cast<const char*>(source_.data));
  } else {
    EXPECT_DEATH(static_cast<void>(*data), "");
  }
}

TEST_P(MemoryContract, CountsReadsByTheHost) {
  const ArrayRef one = device_put(source_, SingleDeviceSharding::make(world_->device(DeviceId(2))), true);
  const TransferRecording recording;
  const auto value = device_get(one);
  EXPECT_EQ(device_get(one)->data, value->data) << "the second read finds the value of the first";
  EXPECT_EQ(test::bytes_of(recording), GetParam().is_host_readable ? 0 : 512);
}

TEST_P(MemoryContract, GuardsReadsThatAreTransfers) {
  const ArrayRef array = device_put(source_, rows_, true);
  TransferGuards guards;
  guards.levels[static_cast<size_t>(TransferDirection::kDeviceToHost)] = GuardLevel::kDisallow;
  check_host_read(*array, guards, true, "device_get");
  const std::string refusal =
      error_of<TransferGuardError>([&] { check_host_read(*array, guards, false, "__array__"); });
  if (GetParam().is_host_readable) {
    EXPECT_EQ(refusal, "");
  } else {
    EXPECT_EQ(refusal, "__array__: disallowed implicit device-to-host transfer of a (8, 16) float32 from " +
                           rows_->to_string() +
                           " to the host; expected an explicit transfer, got the guard level \"disallow\"; read it by "
                           "device_get, or put it under `with transfer_guard_device_to_host(\"allow\"):`");
    device_get(array);
    check_host_read(*array, guards, false, "__array__");  // the value that was read is on the host
  }
}

TEST_P(MemoryContract, RefusesToShareWhatTheOtherSideCannotRead) {
  const ShardingRef one = SingleDeviceSharding::make(world_->device(DeviceId(0)));
  const ArrayRef array = device_put(source_, one, true);
  EXPECT_EQ(can_alias(source_, *one), GetParam().is_host_readable);
  const std::string exported = error_of<UnsupportedBuffer>([&] { check_one_device(*array, "__dlpack__"); });
  const std::string aliased = error_of<InvalidArgument>([&] { device_put_alias(source_, one, true); });
  if (GetParam().is_host_readable) {
    EXPECT_EQ(exported, "");
    EXPECT_EQ(aliased, "");
  } else {
    EXPECT_EQ(
        exported,
        cuda_ordinal(*array) == 0
            ? ""
            : "__dlpack__: the Array is in the memory of gpu:0, which the host cannot read; expected host memory; pass "
              "its value: device_get(x)");
    EXPECT_EQ(aliased, "device_put: may_alias=True shares the source's memory on the host, but sharding " +
                           one->to_string() +
                           " is on GPUs with their own memory; expected CPU devices; leave may_alias out for a copy");
  }
}

TEST_P(MemoryContract, CountsTheBytesOfEachDevice) {
  const ArrayRef rows = device_put(source_, rows_, true);
  EXPECT_EQ(test::bytes_in_use(world_), (test::Bytes{128, 128, 128, 128}));
  const ArrayRef one = device_put(source_, SingleDeviceSharding::make(world_->device(DeviceId(2))), true);
  EXPECT_EQ(test::bytes_in_use(world_), (test::Bytes{128, 128, 640, 128}));
  rows->delete_();
  EXPECT_EQ(test::bytes_in_use(world_), (test::Bytes{0, 0, 512, 0}));
  const ArrayRef moved =
      reshard(one, SingleDeviceSharding::make(world_->device(DeviceId(0))), {.committed = true, .donate = true});
  EXPECT_TRUE(one->is_deleted());
  EXPECT_EQ(test::bytes_in_use(world_), (test::Bytes{512, 0, 0, 0}));
  EXPECT_EQ(values(*device_get(moved)), values(source_));
  EXPECT_EQ(world_->device(DeviceId(2))->memory_stats().peak_bytes_in_use, 640);
}

TEST_P(MemoryContract, HoldsTheLimitOfEachDevice) {
  const auto world = make(1, 2, 600);
  const ShardingRef one = SingleDeviceSharding::make(world->device(DeviceId(1)));
  const ArrayRef first = device_put(source_, one, true);
  const std::string message = error_of<OutOfMemory>([&] { device_put(source_, one, true); });
  const std::string begin = fmt::format(
      "RESOURCE_EXHAUSTED: device_put: out of memory on {}:1: 512 bytes (512 bytes) asked for, 512 bytes (512 bytes) in use, "
      "limit 600 bytes (600 bytes)",
      world->platform());
  EXPECT_EQ(message.substr(0, begin.size()), begin);
  first->delete_();
  EXPECT_EQ(values(*device_get(device_put(source_, one, true))), values(source_));
}

TEST_P(MemoryContract, FreesMemoryAfterTheLastReader) {
  ArrayRef array = device_put(source_, rows_, true);
  const BufferRef buffer = array->storage()->buffer(BufferId(3));
  const MemorySpace& space = *buffer.block->space();
  EXPECT_EQ(&space, &world_->device(DeviceId(3))->space(MemoryKind::kDevice));
  const int64_t with = space.stats().bytes_in_use;
  array->delete_();
  EXPECT_EQ(space.stats().bytes_in_use <= with, true);
  EXPECT_EQ(test::bytes_of(buffer, 128, *world_),
            test::ByteArray(static_cast<std::byte*>(source_.data) + 384, static_cast<std::byte*>(source_.data) + 512));
}

INSTANTIATE_ON_EVERY_BACKEND(MemoryContract);

TEST(EmulatedGpu, HasTheFactsOfItsChip) {
  const EmulatedGpu h100 = emulated_gpu_from_name("h100");
  EXPECT_EQ(h100.device_kind, "NVIDIA H100 80GB HBM3");
  const auto world = test::make_world(1, 4, {}, make_emulated_gpu_backend(h100));
  const Device& device = *world->device(DeviceId(3));
  EXPECT_EQ(device.platform(), "gpu");
  EXPECT_EQ(device.to_string(), "gpu:3");
  EXPECT_EQ(device.repr(), "GpuDevice(id=3)");
  EXPECT_EQ(device.device_kind(), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(device.memory_bytes(), int64_t{80} << 30);
  EXPECT_EQ(device.memory_stats().bytes_limit, int64_t{80} << 30);
  EXPECT_EQ(world->arenas(), 4);
  EXPECT_EQ(device.arena_index(), ArenaIndex(3));
  EXPECT_EQ(world->device(DeviceId(0))->memory(MemoryKind::kDevice).to_string(),
            "DeviceMemory(id=0, process_index=0, client=gpu)");
  EXPECT_THROW(emulated_gpu_from_name("v5e"), InvalidArgument);
}

TEST(EmulatedGpu, SharesTheMemoryNearItWithoutAChip) {
  const auto world = Client::make(Machine::from_synthetic("numa:2(memory=8GB) core:4 pu:1"),
                                  {.num_devices = 8, .backend = make_emulated_gpu_backend({})});
  EXPECT_EQ(world->device(DeviceId(7))->memory_bytes(), 2'000'000'000);
  EXPECT_EQ(world->device(DeviceId(7))->lane(), LaneId(1));
  EXPECT_EQ(world->device(DeviceId(7))->device_kind(), "emulated GPU");
}

}  // namespace
}  // namespace artifex_devices
