// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/partition/partition_spec.h"
#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// A client of `devices` CPU devices on a synthetic machine of `nodes` NUMA nodes with 4 cores each.
inline ClientRef world_of(int64_t devices, int nodes = 1) {
  const auto machine = Machine::from_synthetic("numa:" + std::to_string(nodes) + " core:4 pu:1");
  return Client::make(machine, {.num_devices = devices, .bytes_limit = {}, .compile_only = false});
}

inline std::vector<Device*> all_devices(const ClientRef& client) {
  std::vector<Device*> devices;
  for (const DeviceId id : client->device_ids()) devices.push_back(client->device(id));
  return devices;
}

inline std::vector<AxisName> names(const std::vector<std::string>& texts) {
  std::vector<AxisName> made;
  for (const std::string& text : texts) made.emplace_back(text);
  return made;
}

inline SpecEntry on(const std::vector<std::string>& axes) { return SpecEntry(names(axes)); }
inline PartitionSpec P(std::vector<SpecEntry> entries) { return PartitionSpec(std::move(entries)); }

/// make_mesh with Auto axes.
inline MeshRef mesh_of(const ClientRef& client, const Dims& sizes, const std::vector<std::string>& axes) {
  return make_mesh(sizes, names(axes), {}, all_devices(client), "make_mesh");
}

/// The message of the error, or "no error".
template <class Expected, class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Expected& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace artifex_devices
