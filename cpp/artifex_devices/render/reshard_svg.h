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

/// Bytes from one device to another, both by id; several of one pair add up.
struct DeviceTraffic {
  int64_t from = 0;
  int64_t to = 0;
  int64_t bytes = 0;
};

/// A reshard, for a picture of it.
struct ReshardPicture {
  std::string title;
  std::vector<std::string> steps;      // in words, written over the arrow from before to after
  std::vector<DeviceTraffic> traffic;  // of direct copies; empty: arrows between devices are not drawn
  std::string why_no_traffic;          // said where `traffic` is empty; "" says nothing
  std::vector<std::pair<std::string, int64_t>> bytes_by_link;  // said where not every pair of devices has an arrow
  const Cluster* cluster = nullptr;                            // that the ids are of: for hosts and slices
};

/// Before and after as two pictures of the array, and an arrow for each pair of devices with its bytes. Where there are
/// more than 32 pairs the arrows are those between hosts, else those between slices, else those into the device that
/// receives most; a line says which.
/// Throws as Sharding::domains, and InvalidArgument for traffic of devices that the ends do not have.
std::string reshard_svg(const Sharding& source, const Sharding& destination, const Dims& shape,
                        const ReshardPicture& picture);

}  // namespace artifex_devices
