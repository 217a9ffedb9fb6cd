// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/mesh_devices.h"

#include <algorithm>
#include <numeric>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_presets.h"

namespace artifex_devices {
namespace {

/// Whether the cores of a chip are an axis of the torus.
bool has_core_axis(const std::string& kind, int64_t cores) {
  return kind == "TPU7x" || kind == "TPU7" || kind == "TPU8i" || (kind == "TPU v5p" && cores > 1);
}

std::string titles_of_sources(const Accelerator& row) {
  std::string titles;
  for (const std::string_view id : row.link_sources) {
    if (id.empty()) continue;
    if (!titles.empty()) titles += "; ";
    titles += find_catalogue_source(id)->title;
  }
  return titles;
}

}  // namespace

void MeshDevices::check_coords() const {
  if (has_coords()) return;
  throw_error(
      "create_device_mesh: {} has no coords; expected TPU devices with coords; set their platform to \"cpu\" or \"gpu\"",
      texts.device(without_coords));
}

std::array<int64_t, 3> MeshDevices::extent() const {
  check_coords();
  std::array<int64_t, 3> sizes = devices.front().coords;
  for (const MeshDevice& each : devices) {
    for (size_t d = 0; d < 3; ++d) sizes[d] = std::max(sizes[d], each.coords[d]);
  }
  for (int64_t& size : sizes) ++size;
  return sizes;
}

std::vector<int64_t> MeshDevices::positions() const {
  std::vector<int64_t> all(devices.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int64_t> MeshDevices::positions_by_id() const {
  std::vector<int64_t> sorted = positions();
  std::ranges::stable_sort(sorted, {}, [&](int64_t at) { return devices[static_cast<size_t>(at)].id; });
  return sorted;
}

FilledTorus filled_torus(const MeshDevices& devices, const std::vector<int64_t>& positions) {
  devices.check_coords();
  const auto at = [&](int64_t position) -> const MeshDevice& { return devices.devices[static_cast<size_t>(position)]; };
  std::array<int64_t, 4> low{};
  std::array<int64_t, 4> high{};
  const auto place_of = [](const MeshDevice& each) {
    return std::array<int64_t, 4>{each.coords[0], each.coords[1], each.coords[2], each.core_on_chip};
  };
  low = high = place_of(at(positions.front()));
  for (const int64_t position : positions) {
    const std::array<int64_t, 4> place = place_of(at(position));
    for (size_t d = 0; d < 4; ++d) {
      low[d] = std::min(low[d], place[d]);
      high[d] = std::max(high[d], place[d]);
    }
  }
  FilledTorus result;
  int64_t places = 1;
  for (size_t d = 0; d < 4; ++d) {
    result.dims.push_back(high[d] - low[d] + 1);
    places = checked_mul(places, result.dims[d]).value_or(0);
  }
  const int64_t cores = result.dims[3];
  result.dims.pop_back();
  const auto refuse_holes = [&]() {
    throw_error<AssertionFailed>("jax_devices={} dims={} cores_per_chip={}", devices.texts.list(positions),
                                 to_string(Dims(std::span<const int64_t>(result.dims.data(), 3))), cores);
  };
  const auto count = static_cast<int64_t>(positions.size());
  if (places != count) refuse_holes();
  const bool core_axis = has_core_axis(devices.device_kind, cores);
  if (!core_axis && cores > 1) {
    const auto second = std::ranges::find_if(positions, [&](int64_t each) { return at(each).core_on_chip != 0; });
    throw_error<AssertionFailed>(
        "Creating meshes for TPU >v3 requires one device per chip (\"megacore\" mode). Got device id {} for a device "
        "of kind {}: {}.",
        at(*second).core_on_chip, devices.texts.device_kind(*second), devices.texts.device(*second));
  }
  if (core_axis) result.dims.push_back(cores);
  result.order.assign(positions.size(), -1);
  for (const int64_t position : positions) {
    const std::array<int64_t, 4> place = place_of(at(position));
    int64_t index = 0;
    for (size_t d = 0; d < result.dims.size(); ++d) index = index * result.dims[d] + (place[d] - low[d]);
    if (std::exchange(result.order[static_cast<size_t>(index)], position) >= 0) refuse_holes();
  }
  return result;
}

TorusLinks torus_links(const MeshDevices& devices, const std::vector<int64_t>& dims) {
  TorusLinks links{{dims, std::vector<bool>(dims.size(), false), 1, 0}, ""};
  const Cluster* cluster = devices.cluster.get();
  if (cluster != nullptr && cluster->inside().kind == NetworkKind::kTorus) {
    const SliceNetwork& inside = cluster->inside();
    // A part of a slice does not wrap.
    for (size_t d = 0; d < std::min(dims.size(), inside.dims.size()); ++d) {
      links.torus.wraps[d] = inside.dims[d] == dims[d] && inside.wraps[d];
    }
    if (!inside.bandwidth) return links;
    links.torus.link_bandwidth = inside.bandwidth->value;
    links.torus.hop_latency = inside.latency ? inside.latency->value : 0;
    links.source = inside.bandwidth->source;
    return links;
  }
  const Accelerator* row = find_accelerator_by_kind(devices.device_kind);
  if (row == nullptr) return links;
  const std::vector<bool> wraps = wraps_by_rule(*row, std::vector<int>(dims.begin(), dims.begin() + 3));
  std::copy(wraps.begin(), wraps.end(), links.torus.wraps.begin());
  const std::optional<double> rate = row->links.one_way ? row->links.one_way : row->links.nominal_one_way;
  if (!row->links.kind.empty() && rate &&
      std::ranges::find(row->device_kinds, devices.device_kind) != row->device_kinds.end()) {
    links.torus.link_bandwidth = *rate;
    links.torus.hop_latency = 1e-6;
    links.source = titles_of_sources(*row);
  }
  return links;
}

}  // namespace artifex_devices
