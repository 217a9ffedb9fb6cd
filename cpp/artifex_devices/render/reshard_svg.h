// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Bytes from one device to another, both by id. Entries of the same pair add up.
struct DeviceTraffic {
  int64_t from = 0;
  int64_t to = 0;
  int64_t bytes = 0;
};

/// Description of a reshard, as input of reshard_svg.
struct ReshardPicture {
  std::string title;
  std::vector<std::string> steps;      // texts above the arrow from before to after
  std::vector<DeviceTraffic> traffic;  // of direct copies; if empty, no arrows between devices are drawn
  std::string why_no_traffic;          // note when `traffic` is empty; "" for none
  std::vector<std::pair<std::string, int64_t>> bytes_by_link;  // noted when not every pair of devices has an arrow
  const Cluster* cluster = nullptr;                            // of the devices: for hosts and slices; can be null
};

/// The array before and after as two pictures, and an arrow with its bytes for each pair of devices. With more than 32
/// pairs, arrows connect hosts; if these are too many, slices; otherwise they lead to the device that receives most. A
/// note reports which.
/// Throws as Sharding::domains does, and InvalidArgument for traffic of devices that are not in the shardings.
std::string reshard_svg(const Sharding& source, const Sharding& destination, const Dims& shape,
                        const ReshardPicture& picture);

}  // namespace artifex_devices
