// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artifex_devices/render/reshard_svg.h"

namespace artifex_devices {

/// Ends of the arrows of a picture (devices, hosts or slices), by number.
struct TrafficGroups {
  enum class Kind : uint8_t { kDevices, kHosts, kSlices, kBusiest };
  struct Arrow {
    int64_t from = 0;
    int64_t to = 0;
    int64_t bytes = 0;
  };
  Kind kind = Kind::kDevices;
  std::vector<int64_t> from;  // ascending
  std::vector<int64_t> to;
  std::vector<Arrow> arrows;            // between two groups: by destination, then source
  std::map<int64_t, int64_t> internal;  // bytes that stay within a group
  int64_t pairs = 0;                    // of devices that exchange bytes

  /// Describes which arrows are drawn; "" if each pair of devices has an arrow.
  std::string note(const std::vector<std::pair<std::string, int64_t>>& bytes_by_link) const;
};

/// The finest groups with at most `max_arrows` arrows and `max_groups` groups on each side. kBusiest has the device
/// that receives most bytes and the devices that send it most. `from` and `to` are the device ids of both ends.
/// Example: 4 devices that all send to each other, 2 per host, and at most 8 arrows: 2 arrows between hosts.
TrafficGroups group_traffic(const std::vector<DeviceTraffic>& traffic, const std::vector<int64_t>& from,
                            const std::vector<int64_t>& to, const Cluster* cluster, int64_t max_arrows,
                            int64_t max_groups);

}  // namespace artifex_devices
