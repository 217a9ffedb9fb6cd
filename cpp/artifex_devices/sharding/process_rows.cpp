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

}  // namespace

std::vector<std::optional<RowHolders>> process_groups(const Sharding& sharding, int64_t ndim,
                                                      std::string_view operation) {
  // As many rows as devices in each dimension: every spec divides that.
  sharding.domains(Dims(ndim, sharding.num_devices()), operation);
  const TileGrid& grid = sharding.grid();
  const DeviceList& devices = *sharding.devices();
  std::vector<std::optional<RowHolders>> result(ndim);
  for (int64_t d = 0; d < ndim; ++d) {
    if (grid.parts(d) == 1) {
      result[d] = RowHolders{devices.processes()};
      continue;
    }
    std::map<ProcessIndex, Cuts> cuts_of_process;
    for (const Position position : sharding.positions()) {
      cuts_of_process[devices[position]->process_index()].insert(grid.tile_coordinate(grid.tile(position), d));
    }
    std::map<Cuts, std::vector<ProcessIndex>> groups;
    for (auto& [process, cuts] : cuts_of_process) groups[std::move(cuts)].push_back(process);
    Cuts distinct;
    size_t total = 0;
    for (const auto& [cuts, processes] : groups) {
      distinct.insert(cuts.begin(), cuts.end());
      total += cuts.size();
    }
    const size_t count = groups.begin()->first.size();
    if (total != distinct.size() || total != count * groups.size()) continue;
    RowHolders& found = result[d].emplace();
    for (auto& [cuts, processes] : groups) found.push_back(std::move(processes));
  }
  return result;
}

std::map<ProcessIndex, std::vector<std::vector<Rows>>> process_parts(const Sharding& sharding, const Dims& shape,
                                                                     std::string_view operation) {
  const ShardDomains domains = sharding.domains(shape, operation);
  const DeviceList& devices = *sharding.devices();
  std::map<ProcessIndex, std::vector<std::set<Rows>>> found;
  for (const Position position : sharding.positions()) {
    const IndexDomain box = domains.domain(position);
    auto& parts = found[devices[position]->process_index()];
    parts.resize(shape.size());
    for (int64_t d = 0; d < shape.size(); ++d) {
      if (box.shape[d] > 0) parts[d].emplace(box.origin[d], box.origin[d] + box.shape[d]);
    }
  }
  std::map<ProcessIndex, std::vector<std::vector<Rows>>> sorted;
  for (const auto& [process, parts] : found) {
    for (const std::set<Rows>& each : parts) sorted[process].emplace_back(each.begin(), each.end());
    if (parts.empty()) sorted[process];
  }
  return sorted;
}

Rows batch_share(const Sharding& sharding, int64_t length, int64_t dimension) {
  if (dimension < 0)
    throw_error("batch_share: dimension is {}; expected 0 or more; count dimensions from 0", dimension);
  Dims shape(std::max(dimension + 1, sharding.grid().parts().size()), sharding.num_devices());
  shape[dimension] = length;
  std::set<Rows> rows;
  for (const Shard& shard : sharding.shards(shape, "batch_share")) {
    rows.emplace(shard.box.origin[dimension], shard.box.origin[dimension] + shard.box.shape[dimension]);
  }
  const auto gap = std::ranges::adjacent_find(rows, [](auto& one, auto& next) { return one.second != next.first; });
  if (rows.empty() || gap != rows.end()) {
    throw_error(
        "batch_share: the rows that this process holds of {} are [{}]; expected contiguous rows; order the mesh by "
        "process, as make_mesh and DeviceMeshManager do",
        sharding.to_string(), fmt::join(rows, ", "));
  }
  return {rows.begin()->first, rows.rbegin()->second};
}

}  // namespace artifex_devices
