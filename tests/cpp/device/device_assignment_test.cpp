// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_assignment.h"

#include <gtest/gtest.h>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using namespace std::string_literals;

std::string refusal(int64_t replicas, int64_t computations, std::vector<int64_t> ordinals) {
  return message_of([&] { DeviceAssignment::make(replicas, computations, std::move(ordinals), "create"); });
}

std::string fault_of(const std::string& bytes) {
  return message_of([&] { DeviceAssignment::deserialize(bytes); });
}

TEST(DeviceAssignment, IsByReplicaAndComputation) {
  const auto made = DeviceAssignment::make(2, 3, {0, 1, 2, 7, 8, 9}, "create");
  EXPECT_EQ(made.replica_count(), 2);
  EXPECT_EQ(made.computation_count(), 3);
  EXPECT_EQ(made.device_ordinal(1, 0), 7);
  EXPECT_EQ(made.logical_ids_for_device(8), (std::pair<int64_t, int64_t>(1, 1)));
  EXPECT_EQ(
      made.to_string(),
      "DeviceAssignment{replica_count=2, computation_count=3, Computation0{0 7} Computation1{1 8} Computation2{2 9}}");
  EXPECT_EQ(message_of([&] { made.device_ordinal(2, 0); }),
            "device_ordinal: replica 2 of computation 0 is not there; expected a replica from 0 to 1 and a computation "
            "from 0 to 2");
  EXPECT_EQ(message_of([&] { made.logical_ids_for_device(3); }),
            "logical_ids_for_device: device 3 runs nothing here; expected one of 0, 1, 2, 7, 8, 9");
}

TEST(DeviceAssignment, SerializesToTheBytesOfXla) {
  EXPECT_EQ(DeviceAssignment::make(2, 1, {0, 1}, "create").serialize(), "\x08\x02\x10\x01\x1a\x04\x0a\x02\x00\x01"s);
  EXPECT_EQ(DeviceAssignment::make(2, 2, {300, 70000, 2147483647, 5}, "create").serialize(),
            "\x08\x02\x10\x02\x1a\x09\x0a\x07\xac\x02\xff\xff\xff\xff\x07\x1a\x06\x0a\x04\xf0\xa2\x04\x05"s);
}

TEST(DeviceAssignment, RoundTripsThroughBytes) {
  for (const auto& made :
       {DeviceAssignment::make(2, 3, {0, 1, 2, 7, 8, 9}, "create"), DeviceAssignment::make(1, 1, {INT64_MAX}, "create"),
        DeviceAssignment::make(3, 1, {5, 0, 3}, "create")}) {
    const auto back = DeviceAssignment::deserialize(made.serialize());
    EXPECT_EQ(back, made);
    EXPECT_EQ(back.hash(), made.hash());
  }
  EXPECT_NE(DeviceAssignment::make(2, 1, {0, 1}, "create"), DeviceAssignment::make(1, 2, {0, 1}, "create"));
}

TEST(DeviceAssignment, ReadsListsThatAreNotPackedAndSkipsUnknownFields) {
  EXPECT_EQ(DeviceAssignment::deserialize("\x08\x02\x10\x01\x7a\x01x\x1a\x06\x08\x04\x08\x05\x10\x09"s),
            DeviceAssignment::make(2, 1, {4, 5}, "create"));
}

TEST(DeviceAssignment, RefusesInvalidAssignments) {
  EXPECT_EQ(refusal(0, 2, {}),
            "create: there are 0 replicas of 2 computations; expected at least one of each, got none; give one device "
            "ordinal for each replica and computation");
  EXPECT_EQ(refusal(1, 6, {0, -1, 3, 3, -5, 0}),
            "create: device ordinals are not usable, negative: -1, -5; more than once: 0, 3; expected numbers from 0, "
            "each once; give each replica and computation its own device");
  EXPECT_EQ(refusal(2, 2, {0, 1, 2}),
            "create: 2 replicas of 2 computations have 3 device ordinals; expected 4; give one for each");
  EXPECT_EQ(refusal(INT64_MAX, INT64_MAX, {})
                .find("create: 9223372036854775807 replicas of 9223372036854775807 computations are too many; expected "
                      "16777216 devices at most"),
            0U);
}

TEST(DeviceAssignment, RefusesInconsistentBytes) {
  EXPECT_NE(fault_of("").find("there are 0 replicas of 0 computations"), std::string::npos);
  EXPECT_NE(fault_of("\x08\x02\x10\x01").find("computation_count is 1 and there are 0 computations"),
            std::string::npos);
  EXPECT_NE(fault_of("\x08\x02\x10\x01\x1a\x03\x0a\x01\x05").find("replica_count is 2 and computation 0 has 1"),
            std::string::npos);
  EXPECT_NE(fault_of("\x08\x02\x10\x02\x1a\x04\x0a\x02\x01\x02\x1a\x03\x0a\x01\x05").find("computation 1 has 1"),
            std::string::npos);
  EXPECT_NE(fault_of("\x08\x02\x10\x01\x1a\x04\x0a\x02\x05\x05").find("more than once: 5"), std::string::npos);
  EXPECT_NE(fault_of("\x08\xff\xff\xff\xff\x0f").find("field 1 is 4294967295, the maximum is 16777216"),
            std::string::npos);
  EXPECT_NE(fault_of("\x08\x01\x10\x01\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").find("is -1, below 0"),
            std::string::npos);
}

}  // namespace
}  // namespace artifex_devices
