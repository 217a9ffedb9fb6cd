// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/transfer_recording.h"

#include "artifex_devices/device/emulated_gpu/emulated_gpu_backend.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using Counts = std::vector<std::tuple<std::string, std::string, int64_t, int64_t>>;

Counts counts_of(const TransferRecording& recording) {
  Counts counts;
  for (const auto& [route, count] : recording.routes()) {
    counts.emplace_back(route.from.name, route.to.name, count.calls, count.bytes);
  }
  return counts;
}

ClientRef gpus(int64_t count) { return test::make_world(1, count, {}, make_emulated_gpu_backend({})); }

TEST(TransferRecording, CountsEachTransferOnceForEachRoute) {
  test::Random random(1);
  const auto world = gpus(2);
  const HostView source = test::dense(random, {4, 2}, DType::kFloat32);
  const auto rows = test::named(world, {2}, {"a"});
  TransferRecording recording;
  const ArrayRef array = device_put(source, rows, true);
  device_put(source, rows, true);
  device_get(array);
  device_get(array);  // cached
  recording.stop();
  device_put(source, rows, true);
  EXPECT_EQ(
      counts_of(recording),
      (Counts{{"host", "gpu:0", 2, 32}, {"host", "gpu:1", 2, 32}, {"gpu:0", "host", 1, 16}, {"gpu:1", "host", 1, 16}}));
  ASSERT_EQ(recording.lines().size(), 2U);
  const TransferLine put{TransferDirection::kHostToDevice, {}};
  EXPECT_EQ(recording.lines().at(put), (TransferCount{2, 64}));
}

TEST(TransferRecording, NamesMemoryKindsAndDeviceKinds) {
  test::Random random(2);
  const auto world = test::make_world(1, 1, {}, make_emulated_gpu_backend(emulated_gpu_from_name("h100")));
  const ShardingRef pinned =
      SingleDeviceSharding::make(world->device(DeviceId(0)))->with_memory_kind(MemoryKind::kPinnedHost);
  const TransferRecording recording;
  device_put(test::dense(random, {4}, DType::kFloat32), pinned, true);
  ASSERT_EQ(recording.routes().size(), 1U);
  const RouteEnd to = recording.routes().begin()->first.to;
  EXPECT_EQ(to.name, "gpu:0 pinned_host");
  EXPECT_EQ(to.device_kind, "NVIDIA H100 80GB HBM3");
}

TEST(TransferRecording, SeveralRecordTheSameTransfers) {
  test::Random random(3);
  const auto world = gpus(1);
  const ShardingRef sharding = SingleDeviceSharding::make(world->device(DeviceId(0)));
  EXPECT_FALSE(is_recorded(Recorded::kTransfers));
  {
    const TransferRecording outer;
    EXPECT_TRUE(is_recorded(Recorded::kTransfers));
    {
      const TransferRecording inner;
      device_put(test::dense(random, {4}, DType::kFloat32), sharding, true);
      EXPECT_EQ(counts_of(inner), counts_of(outer));
    }
    device_put(test::dense(random, {2}, DType::kFloat32), sharding, true);
    EXPECT_EQ(counts_of(outer), (Counts{{"host", "gpu:0", 2, 24}}));
  }
  EXPECT_FALSE(is_recorded(Recorded::kTransfers));
}

TEST(TransferRecording, HostOperandsOfACpuAreReadInPlace) {
  const auto rows = test::named(test::make_world(1, 2), {2}, {"a"});
  const auto gpu_rows = test::named(gpus(2), {2}, {"a"});
  const TransferRecording recording;
  record_host_operand(*rows, {4, 2}, DType::kFloat32);
  EXPECT_TRUE(recording.routes().empty());
  record_host_operand(*gpu_rows, {4, 2}, DType::kFloat32);
  record_host_operand(*gpu_rows, {3}, DType::kFloat32);  // does not fit: all of it goes to both
  EXPECT_EQ(counts_of(recording), (Counts{{"host", "gpu:0", 2, 28}, {"host", "gpu:1", 2, 28}}));
}

}  // namespace
}  // namespace artifex_devices
