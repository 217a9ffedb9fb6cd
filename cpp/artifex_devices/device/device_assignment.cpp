// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_assignment.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "artifex_devices/base/shortened_list.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/wire.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kDeserialize = "DeviceAssignment.deserialize";

// Field numbers of xla.DeviceAssignmentProto and of its ComputationDevice.
enum Field { kReplicaCount = 1, kComputationCount = 2, kComputationDevices = 3 };
enum ComputationField { kReplicaDeviceIds = 1 };

std::string listed(const std::vector<int64_t>& numbers) { return shortened_list(numbers, std::identity{}); }

std::vector<int64_t> repeated(std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  std::vector<int64_t> twice;
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] == numbers[i - 1] && (twice.empty() || twice.back() != numbers[i])) twice.push_back(numbers[i]);
  }
  return twice;
}

}  // namespace

DeviceAssignment DeviceAssignment::make(int64_t replicas, int64_t computations, std::vector<int64_t> ordinals,
                                        std::string_view operation) {
  if (replicas < 1 || computations < 1) {
    throw_error(
        "{}: there are {} replicas of {} computations; expected at least one of each, got none; give one device "
        "ordinal for each replica and computation",
        operation, replicas, computations);
  }
  if (replicas > kMostDevices / computations) {
    throw_error("{}: {} replicas of {} computations are too many; expected {} devices at most; give fewer", operation,
                replicas, computations, kMostDevices);
  }
  if (static_cast<int64_t>(ordinals.size()) != replicas * computations) {
    throw_error("{}: {} replicas of {} computations have {} device ordinals; expected {}; give one for each", operation,
                replicas, computations, ordinals.size(), replicas * computations);
  }
  std::vector<int64_t> negative;
  std::ranges::copy_if(ordinals, std::back_inserter(negative), [](int64_t number) { return number < 0; });
  const std::vector<int64_t> twice = repeated(ordinals);
  if (!negative.empty() || !twice.empty()) {
    std::string faults;
    if (!negative.empty()) faults = fmt::format("negative: {}", listed(negative));
    if (!twice.empty()) faults += fmt::format("{}more than once: {}", faults.empty() ? "" : "; ", listed(twice));
    throw_error(
        "{}: device ordinals are not usable, {}; expected numbers from 0, each once; give each replica and computation "
        "its own device",
        operation, faults);
  }
  DeviceAssignment made;
  made.replicas_ = replicas;
  made.computations_ = computations;
  made.ordinals_ = std::move(ordinals);
  return made;
}

std::string DeviceAssignment::serialize() const {
  WireWriter writer;
  writer.add_number(kReplicaCount, replicas_);
  writer.add_number(kComputationCount, computations_);
  std::vector<int64_t> column(static_cast<size_t>(replicas_));
  for (int64_t computation = 0; computation < computations_; ++computation) {
    for (int64_t replica = 0; replica < replicas_; ++replica) {
      column[static_cast<size_t>(replica)] = ordinals_[static_cast<size_t>(replica * computations_ + computation)];
    }
    WireWriter devices;
    devices.add_packed(kReplicaDeviceIds, column);
    writer.add_item(kComputationDevices, devices);
  }
  return writer.take();
}

DeviceAssignment DeviceAssignment::deserialize(std::string_view bytes) {
  constexpr std::string_view kWhat = "DeviceAssignmentProto";
  int64_t replicas = 0;
  int64_t computations = 0;
  std::vector<int64_t> by_computation;
  std::vector<int64_t> ends;  // in by_computation
  WireReader reader(bytes, kDeserialize, kWhat);
  while (reader.next()) {
    switch (reader.field()) {
      case kReplicaCount:
        replicas = reader.number(kMostDevices);
        break;
      case kComputationCount:
        computations = reader.number(kMostDevices);
        break;
      case kComputationDevices: {
        if (static_cast<int64_t>(ends.size()) == kMostDevices) reader.fail_here("there are too many computations");
        WireReader devices = reader.message("ComputationDevice");
        while (devices.next()) {
          if (devices.field() == kReplicaDeviceIds) devices.numbers(by_computation, INT64_MAX, kMostDevices);
        }
        ends.push_back(static_cast<int64_t>(by_computation.size()));
        break;
      }
    }
  }
  if (static_cast<int64_t>(ends.size()) != computations) {
    reader.fail_here(fmt::format("computation_count is {} and there are {} computations", computations, ends.size()));
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    const int64_t count = ends[i] - (i ? ends[i - 1] : 0);
    if (count != replicas) {
      reader.fail_here(fmt::format("replica_count is {} and computation {} has {}", replicas, i, count));
    }
  }
  std::vector<int64_t> ordinals(by_computation.size());
  for (size_t i = 0; i < by_computation.size(); ++i) {
    const auto computation = static_cast<int64_t>(i) / replicas;
    const auto replica = static_cast<int64_t>(i) % replicas;
    ordinals[static_cast<size_t>(replica * computations + computation)] = by_computation[i];
  }
  return make(replicas, computations, std::move(ordinals), kDeserialize);
}

int64_t DeviceAssignment::device_ordinal(int64_t replica, int64_t computation) const {
  if (replica < 0 || replica >= replicas_ || computation < 0 || computation >= computations_) {
    throw_error<IndexOutOfRange>(
        "device_ordinal: replica {} of computation {} is not there; expected a replica from 0 to {} and a computation "
        "from 0 to {}",
        replica, computation, replicas_ - 1, computations_ - 1);
  }
  return ordinals_[static_cast<size_t>(replica * computations_ + computation)];
}

std::pair<int64_t, int64_t> DeviceAssignment::logical_ids_for_device(int64_t ordinal) const {
  const auto found = std::ranges::find(ordinals_, ordinal);
  if (found == ordinals_.end()) {
    throw_error("logical_ids_for_device: device {} runs nothing here; expected one of {}", ordinal, listed(ordinals_));
  }
  const int64_t position = found - ordinals_.begin();
  return {position / computations_, position % computations_};
}

std::string DeviceAssignment::to_string() const {
  std::string text =
      fmt::format("DeviceAssignment{{replica_count={}, computation_count={}, ", replicas_, computations_);
  for (int64_t computation = 0; computation < computations_; ++computation) {
    text += fmt::format("{}Computation{}{{", computation ? " " : "", computation);
    for (int64_t replica = 0; replica < replicas_; ++replica) {
      text += fmt::format("{}{}", replica ? " " : "",
                          ordinals_[static_cast<size_t>(replica * computations_ + computation)]);
    }
    text += '}';
  }
  return text + '}';
}

size_t DeviceAssignment::hash() const noexcept {
  size_t hash = static_cast<size_t>(replicas_);
  for (const int64_t ordinal : ordinals_) hash = hash_mix(hash, static_cast<size_t>(ordinal));
  return hash;
}

}  // namespace artifex_devices
