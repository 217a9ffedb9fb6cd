// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/trace_recording.h"

#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

TEST(TraceRecording, HasAnEventForEachDeviceOfATransfer) {
  test::Random random(1);
  const auto world = test::make_world(1, 2);
  TraceRecording trace(ProcessIndex(0), world);
  device_put(test::dense(random, {4, 2}, DType::kFloat32), test::named(world, {2}, {"a"}), true);
  trace.stop();
  device_put(test::dense(random, {4, 2}, DType::kFloat32), test::named(world, {2}, {"a"}), true);
  const std::vector<TraceEvent> events = trace.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].kind, TraceKind::kTransfer);
  EXPECT_EQ(events[1].device, "cpu:1");
  EXPECT_EQ(events[1].name, "host-to-device");
  EXPECT_EQ(events[1].detail, "host -> cpu:1");
  EXPECT_EQ(events[1].planned_bytes, 16);
  EXPECT_EQ(events[1].moved_bytes, 16);
  EXPECT_GT(events[1].begin_ns, 0);
  EXPECT_GE(events[1].end_ns, events[1].begin_ns);
  EXPECT_EQ(trace.dropped(), 0);
}

TEST(TraceRecording, EndsATransferInTheBackgroundWhenItsCopiesHaveRun) {
  test::Random random(2);
  const auto world = Client::make(Machine::from_synthetic("pu:2"), {.num_devices = 2, .seed = 5});
  const ArrayRef array = device_put(test::dense(random, {4}, DType::kFloat32),
                                    SingleDeviceSharding::make(world->device(DeviceId(0))), true);
  TraceRecording trace(ProcessIndex(0), world);
  const ArrayRef moved = reshard(array, SingleDeviceSharding::make(world->device(DeviceId(1))), {.force_copy = true});
  const ArrayRef late = reshard(array, SingleDeviceSharding::make(world->device(DeviceId(1))), {.force_copy = true});
  ASSERT_EQ(trace.events().size(), 2U);
  EXPECT_EQ(trace.events()[0].end_ns, 0);
  EXPECT_EQ(trace.events()[0].moved_bytes, 0);
  moved->block_until_ready();
  late->block_until_ready();
  for (const TraceEvent& event : trace.events()) {
    if (event.kind != TraceKind::kTransfer) continue;
    EXPECT_GE(event.end_ns, event.begin_ns);
    EXPECT_EQ(event.moved_bytes, 16);
    EXPECT_EQ(event.detail, "cpu:0 -> cpu:1");
  }
}

TEST(TraceRecording, HasTheMemoryOfItsClient) {
  const auto world = test::make_world(1, 2);
  const auto other = test::make_world(1, 1);
  Device& device = *world->device(DeviceId(1));
  ASSERT_TRUE(device.try_charge(5));
  TraceRecording trace(ProcessIndex(3), world);
  ASSERT_TRUE(device.try_charge(20));
  ASSERT_TRUE(other->device(DeviceId(0))->try_charge(7));
  device.discharge(25);
  trace.stop();
  other->device(DeviceId(0))->discharge(7);
  std::vector<std::pair<std::string, int64_t>> values;
  for (const TraceMemory& value : trace.memory()) values.emplace_back(value.device, value.bytes);
  EXPECT_EQ(values,
            (std::vector<std::pair<std::string, int64_t>>{{"cpu:0", 0}, {"cpu:1", 5}, {"cpu:1", 25}, {"cpu:1", 0}}));
}

TEST(TraceRecording, GivesItsProcessToEventsWithoutOne) {
  const TraceRecording trace(ProcessIndex(3), test::make_world(1, 1));
  record(TraceEvent{.name = "a"});
  record(TraceEvent{.process = ProcessIndex(1), .name = "b"});
  ASSERT_EQ(trace.events().size(), 2U);
  EXPECT_EQ(trace.events()[0].process, ProcessIndex(3));
  EXPECT_EQ(trace.events()[1].process, ProcessIndex(1));
}

}  // namespace
}  // namespace artifex_devices
