// SPDX-License-Identifier: Apache-2.0
// Worlds and shardings for the tests of arrays and transfers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "artifex_devices/device/client.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/single_device_sharding.h"

namespace artifex_devices::test {

/// `devices` devices spread over `nodes` memories of a made-up machine.
inline ClientRef make_world(int nodes, int64_t devices, std::optional<int64_t> bytes_limit = {},
                            BackendRef backend = nullptr) {
  ClientOptions options;
  options.backend = std::move(backend);
  options.num_devices = devices;
  options.bytes_limit = bytes_limit;
  return Client::make(Machine::from_synthetic(fmt::format("pack:{} [numa] core:2 pu:1", nodes)), options);
}

inline std::vector<Device*> devices_of(const ClientRef& client) {
  std::vector<Device*> devices;
  for (const DeviceId id : client->device_ids()) devices.push_back(client->device(id));
  return devices;
}

/// A mesh over the first devices with axes "a", "b", ... of these sizes.
inline MeshRef mesh_of(const ClientRef& client, const Dims& sizes) {
  std::vector<AxisName> names;
  for (int64_t i = 0; i < sizes.size(); ++i) names.emplace_back(std::string(1, static_cast<char>('a' + i)));
  return make_mesh(sizes, names, {}, devices_of(client), "test");
}

/// One string an array dimension, naming the axes that cut it: {"a", "", "bc"}.
inline PartitionSpec spec_of(const std::vector<std::string_view>& dimensions) {
  std::vector<SpecEntry> entries;
  for (const std::string_view axes : dimensions) {
    std::vector<AxisName> names;
    for (const char axis : axes) names.emplace_back(std::string(1, axis));
    entries.emplace_back(names);
  }
  return PartitionSpec(std::move(entries));
}

inline ShardingRef named(const ClientRef& client, const Dims& sizes, const std::vector<std::string_view>& dimensions,
                         Uneven uneven = Uneven::kError) {
  return NamedSharding::make(mesh_of(client, sizes), spec_of(dimensions), MemoryKind::kDevice, uneven);
}

using Bytes = std::vector<int64_t>;  // by device id

inline Bytes everywhere(const ClientRef& client, int64_t bytes) {
  return Bytes(static_cast<size_t>(client->device_count()), bytes);
}

inline Bytes bytes_in_use(const ClientRef& client) {
  Bytes bytes;
  for (const Device* device : devices_of(client)) bytes.push_back(device->memory_stats().bytes_in_use);
  return bytes;
}

inline Bytes bytes_reserved(const ClientRef& client) {
  Bytes bytes;
  for (const Device* device : devices_of(client)) bytes.push_back(device->memory_stats().bytes_reserved);
  return bytes;
}

/// Of all memories behind the client, each counted once.
inline int64_t arena_bytes_in_use(const ClientRef& client) {
  std::vector<const Arena*> seen;
  int64_t bytes = 0;
  for (const ArenaIndex i : IdRange<ArenaIndex>(client->arenas())) {
    const Arena* arena = &client->arena(i);
    if (std::find(seen.begin(), seen.end(), arena) != seen.end()) continue;
    seen.push_back(arena);
    bytes += arena->stats().bytes_in_use;
  }
  return bytes;
}

/// The text of the error of type E that `call` throws; "" if it throws none.
template <class E, class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace artifex_devices::test
