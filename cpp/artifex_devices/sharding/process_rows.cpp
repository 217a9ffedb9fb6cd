// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/process_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {
namespace {

using Cuts = std::set<int64_t>;

/// Calls f(tile) for each position of this process.
template <class F>
void for_each_tile_here(const Sharding& sharding, F&& f) {
  const DeviceList& devices = *sharding.devices();
  for (int64_t i = 0; i < devices.addressable_count(); ++i) f(sharding.grid().tile(devices.addressable_position(i)));
}

}  // namespace

std::vector<std::optional<int64_t>> process_counts(const Sharding& sharding, int64_t ndim) {
  std::vector<std::optional<int64_t>> counts(static_cast<size_t>(ndim), 1);
  if (sharding.is_fully_addressable() || sharding.is_fully_replicated()) return counts;
  // As many rows as devices in each dimension: every spec divides that.
  sharding.domains(Dims(ndim, sharding.num_devices()), "devices_indices_map");
  const TileGrid& grid = sharding.grid();
  const DeviceList& devices = *sharding.devices();
  for (int64_t d = 0; d < ndim; ++d) {
    std::map<int, Cuts> cuts_of_process;
    for (int64_t position = 0; position < grid.positions(); ++position) {
      cuts_of_process[devices[position]->process_index()].insert(grid.tile_coordinate(grid.tile(position), d));
    }
    std::set<Cuts> groups;
    for (auto& [process, cuts] : cuts_of_process) groups.insert(std::move(cuts));
    Cuts distinct;
    size_t total = 0;
    for (const Cuts& cuts : groups) {
      distinct.insert(cuts.begin(), cuts.end());
      total += cuts.size();
    }
    const bool is_uniform = total == distinct.size() && std::ranges::all_of(groups, [&](const Cuts& cuts) {
                              return cuts.size() == groups.begin()->size();
                            });
    counts[static_cast<size_t>(d)] = is_uniform ? std::optional<int64_t>(std::ssize(groups)) : std::nullopt;
  }
  return counts;
}

std::vector<std::vector<int64_t>> process_starts(const Sharding& sharding, const Dims& shape) {
  const ShardDomains domains = sharding.domains(shape, "addressable_devices_indices_map");
  std::vector<Cuts> starts(static_cast<size_t>(shape.size()));
  for_each_tile_here(sharding, [&](int64_t tile) {
    const IndexDomain box = domains.domain(tile);
    for (int64_t d = 0; d < shape.size(); ++d) starts[static_cast<size_t>(d)].insert(box.origin[d]);
  });
  std::vector<std::vector<int64_t>> sorted;
  for (const Cuts& each : starts) sorted.emplace_back(each.begin(), each.end());
  return sorted;
}

std::pair<int64_t, int64_t> batch_share(const Sharding& sharding, int64_t length, int64_t dimension) {
  if (dimension < 0)
    throw_error("batch_share: dimension is {}; expected 0 or more; count from the first one", dimension);
  Dims shape(std::max(dimension + 1, sharding.grid().parts().size()), sharding.num_devices());
  shape[dimension] = length;
  const ShardDomains domains = sharding.domains(shape, "addressable_devices_indices_map");
  std::set<std::pair<int64_t, int64_t>> rows;
  for_each_tile_here(sharding, [&](int64_t tile) {
    const IndexDomain box = domains.domain(tile);
    rows.emplace(box.origin[dimension], box.origin[dimension] + box.shape[dimension]);
  });
  const auto gap = std::ranges::adjacent_find(rows, [](auto& one, auto& next) { return one.second != next.first; });
  if (rows.empty() || gap != rows.end()) {
    throw_error(
        "batch_share: the rows that this process holds of {} are [{}]; expected contiguous ones; order the mesh by "
        "process, as make_mesh and DeviceMeshManager do",
        sharding.to_string(), fmt::join(rows, ", "));
  }
  return {rows.begin()->first, rows.rbegin()->second};
}

}  // namespace artifex_devices
