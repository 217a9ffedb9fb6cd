// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/device_topology.h"

// Private to device_topology.cpp and topology_wire.cpp: the fields of docs/formats/device_topology.proto.
namespace artifex_devices {

struct TopologyParts {
  std::string platform;
  MachineDescription machine;
  std::vector<TopologyDevices> devices;
  int64_t device_count = 0;  // the last field: truncated bytes lack it
};

std::string topology_bytes(const std::string& platform, const DescribedMachine& machine,
                           const std::vector<TopologyDevices>& devices);

/// Throws InvalidArgument for bytes that are not such a message, have another major version, or exceed the limits of
/// DeviceTopology. Does not check that the parts are consistent.
TopologyParts topology_from_bytes(std::string_view bytes, std::string_view operation);

}  // namespace artifex_devices
