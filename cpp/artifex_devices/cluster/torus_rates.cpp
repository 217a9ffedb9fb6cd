// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/torus_rates.h"

#include <algorithm>
#include <array>

#include "artifex_devices/cluster/link_loads.h"

namespace artifex_devices {
namespace {

constexpr size_t kMostAxes = 8;
using Coords = std::array<int64_t, kMostAxes>;

AxisPart part_of(const Torus& torus, size_t axis, int64_t count, int64_t stride) {
  const int64_t size = torus.dims[axis];
  AxisPart part{.physical_axis = static_cast<int>(axis), .count = count, .stride = stride};
  part.is_ring = torus.wraps[axis] && size > 2 && count * stride == size;
  part.bandwidth = (part.is_ring ? 2 : 1) * torus.link_bandwidth / static_cast<double>(stride);
  return part;
}

void add_part(AxisRate& rate, const AxisPart& part) {
  rate.bandwidth += part.bandwidth;
  rate.hops += part.stride * (part.is_ring ? part.count / 2 : part.count - 1);
  rate.parts.push_back(part);
}

Coords coords_of(const std::vector<int64_t>& dims, int64_t place) {
  Coords at{};
  for (size_t p = dims.size(); p-- > 0;) {
    at[p] = place % dims[p];
    place /= dims[p];
  }
  return at;
}

// The grid of equal steps that the chips of a group fill; nothing where they fill none.
std::optional<std::vector<AxisPart>> grid_of(const Torus& torus, const std::vector<int64_t>& group) {
  const size_t axes = torus.dims.size();
  std::vector<std::vector<int64_t>> values(axes);
  for (const int64_t place : group) {
    const Coords at = coords_of(torus.dims, place);
    for (size_t p = 0; p < axes; ++p) values[p].push_back(at[p]);
  }
  std::vector<AxisPart> parts;
  size_t product = 1;
  for (size_t p = 0; p < axes; ++p) {
    std::ranges::sort(values[p]);
    // Clang 14 does not take libstdc++'s std::ranges::unique.
    values[p].erase(std::unique(values[p].begin(), values[p].end()), values[p].end());
    const size_t count = values[p].size();
    product *= count;
    if (count == 1) continue;
    const int64_t step = values[p][1] - values[p][0];
    for (size_t i = 1; i < count; ++i) {
      if (values[p][i] - values[p][i - 1] != step) return std::nullopt;
    }
    parts.push_back(part_of(torus, p, static_cast<int64_t>(count), step));
  }
  if (product != group.size()) return std::nullopt;
  return parts;
}

/// Places of a torus (row-major) as LinkLoads numbers its chips, x fastest.
std::vector<int64_t> chips_of(const std::vector<int64_t>& dims, const std::vector<int64_t>& places) {
  std::vector<int64_t> chips;
  chips.reserve(places.size());
  for (const int64_t place : places) {
    const Coords at = coords_of(dims, place);
    int64_t chip = 0;
    for (size_t p = dims.size(); p-- > 0;) chip = chip * dims[p] + at[p];
    chips.push_back(chip);
  }
  return chips;
}

/// Calls `visit(group)` for the places in the torus of each group along one axis of the mesh.
template <class Visit>
void for_each_group(const std::vector<int64_t>& mesh, size_t axis, const std::vector<int64_t>& order, Visit&& visit) {
  int64_t inner = 1;
  for (size_t l = axis + 1; l < mesh.size(); ++l) inner *= mesh[l];
  const int64_t size = mesh[axis];
  std::vector<int64_t> group(static_cast<size_t>(size));
  for (int64_t start = 0; start < static_cast<int64_t>(order.size()); start += inner * size) {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t k = 0; k < size; ++k)
        group[static_cast<size_t>(k)] = order[static_cast<size_t>(start + i + k * inner)];
      visit(static_cast<const std::vector<int64_t>&>(group));
    }
  }
}

AxisRate rate_as_rings(const Torus& torus, const std::vector<int64_t>& mesh, size_t axis,
                       const std::vector<int64_t>& order) {
  AxisRate rate{.size = mesh[axis]};
  LinkLoads loads(torus.dims, torus.wraps);
  for_each_group(mesh, axis, chips_of(torus.dims, order), [&](const std::vector<int64_t>& group) {
    int64_t way_round = 0;
    for (size_t i = 0; i < group.size(); ++i) {
      const int64_t next = group[(i + 1) % group.size()];
      way_round += loads.add(group[i], next, 1);
      loads.add(next, group[i], 1);
    }
    rate.hops = std::max(rate.hops, way_round / 2);
  });
  rate.link_load = loads.most_bytes();
  rate.bandwidth = 2 * torus.link_bandwidth / std::max(rate.link_load, 1.0);
  return rate;
}

AxisRate rate_of_axis(const Torus& torus, const std::vector<int64_t>& mesh, size_t axis,
                      const std::vector<int64_t>& order) {
  std::optional<AxisRate> worst;
  bool all_grids = true;
  for_each_group(mesh, axis, order, [&](const std::vector<int64_t>& group) {
    if (!all_grids) return;
    const auto parts = grid_of(torus, group);
    all_grids = parts.has_value();
    if (!parts) return;
    AxisRate rate{.size = mesh[axis]};
    for (const AxisPart& part : *parts) add_part(rate, part);
    if (!worst || rate.bandwidth < worst->bandwidth) worst = std::move(rate);
  });
  return all_grids && worst ? *std::move(worst) : rate_as_rings(torus, mesh, axis, order);
}

}  // namespace

std::vector<AxisRate> rates_of(const Torus& torus, const TorusAssignment& assignment) {
  const size_t logical = assignment.factors.empty() ? 0 : assignment.factors[0].size();
  std::vector<AxisRate> rates(logical);
  std::vector<int64_t> used(torus.dims.size(), 1);
  for (size_t l = logical; l-- > 0;) {
    for (size_t p = 0; p < torus.dims.size(); ++p) {
      const int64_t count = assignment.factors[p][l];
      rates[l].size *= count;
      if (count > 1) add_part(rates[l], part_of(torus, p, count, used[p]));
      used[p] *= count;
    }
  }
  return rates;
}

std::vector<AxisRate> rates_of(const Torus& torus, const std::vector<int64_t>& mesh,
                               const std::vector<int64_t>& order) {
  std::vector<AxisRate> rates;
  for (size_t l = 0; l < mesh.size(); ++l) {
    rates.push_back(mesh[l] == 1 ? AxisRate{} : rate_of_axis(torus, mesh, l, order));
  }
  return rates;
}

double seconds_of(const Torus& torus, const std::vector<AxisRate>& rates, const std::vector<double>& traffic) {
  double seconds = 0;
  for (size_t l = 0; l < rates.size(); ++l) {
    const AxisRate& rate = rates[l];
    if (rate.size == 1 || traffic[l] == 0) continue;
    const auto size = static_cast<double>(rate.size);
    seconds += traffic[l] * (size - 1) / size / rate.bandwidth + static_cast<double>(rate.hops) * torus.hop_latency;
  }
  return seconds;
}

}  // namespace artifex_devices
