// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// The device for each replica and computation, as in XLA. Immutable.
/// Example: replicas {{0, 1}, {2, 3}} are "DeviceAssignment{replica_count=2, computation_count=2, Computation0{0 2}
/// Computation1{1 3}}".
class DeviceAssignment {
 public:
  static constexpr int64_t kMostDevices = int64_t{1} << 24;

  /// `ordinals` are row-major, [replica][computation]. Throws InvalidArgument for none or more than 2^24, a size other
  /// than replicas * computations, and numbers that are negative or duplicate (naming them).
  static DeviceAssignment make(int64_t replicas, int64_t computations, std::vector<int64_t> ordinals,
                               std::string_view operation);

  /// Reads an xla.DeviceAssignmentProto. Throws InvalidArgument for anything else, and as make().
  static DeviceAssignment deserialize(std::string_view bytes);
  /// Returns the bytes of an xla.DeviceAssignmentProto, identical to those written by XLA.
  std::string serialize() const;

  int64_t replica_count() const noexcept { return replicas_; }
  int64_t computation_count() const noexcept { return computations_; }
  const std::vector<int64_t>& ordinals() const noexcept { return ordinals_; }
  /// Throws IndexOutOfRange.
  int64_t device_ordinal(int64_t replica, int64_t computation) const;
  /// Returns the replica and computation of a device. Throws InvalidArgument if it is not in the assignment.
  std::pair<int64_t, int64_t> logical_ids_for_device(int64_t ordinal) const;

  std::string to_string() const;
  size_t hash() const noexcept;
  friend bool operator==(const DeviceAssignment&, const DeviceAssignment&) = default;

 private:
  DeviceAssignment() = default;
  int64_t replicas_ = 0;
  int64_t computations_ = 0;
  std::vector<int64_t> ordinals_;
};

}  // namespace artifex_devices
