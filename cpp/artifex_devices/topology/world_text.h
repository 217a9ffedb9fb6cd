// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace artifex_devices {

/// The world described by a string for simulate(). At most one of `xml_path` and `synthetic` is set; if neither is, the
/// machine is the live one. `device_kind` is set if the devices are GPUs.
struct WorldText {
  std::optional<int64_t> num_devices{};
  std::string synthetic{};
  std::string xml_path{};
  std::string device_kind{};
};

/// Parses "8" (eight devices on the live machine), "2 nodes x 4" (eight devices on two NUMA nodes), "4 x h100" (GPUs),
/// a path that ends in ".xml", or hwloc's synthetic notation. Throws InvalidArgument for an empty text, for counts of
/// 0, and for more than 1,024 nodes. Example: "2 nodes x 4" is {8, "numa:2 core:4 pu:1"}.
WorldText parse_world(const std::string& text);

}  // namespace artifex_devices
