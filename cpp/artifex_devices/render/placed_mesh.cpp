// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/placed_mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/render/labels.h"

namespace artifex_devices {

PlacedMesh placed_mesh(const Mesh& mesh) {
  const Cluster* cluster = mesh.empty() ? nullptr : cluster_of(mesh.devices()->front()->client());
  if (cluster == nullptr) {
    throw_error(
        "placed_mesh_svg: {} is of devices whose network is not known; expected a mesh of a cluster's devices; see "
        "artifex_devices.cluster, or use mesh_svg",
        mesh.to_string());
  }
  PlacedMesh placed;
  placed.title = fmt::format("Mesh({}) on {}", mesh.abstract_mesh().axes_text(), cluster->name());
  placed.network = cluster->inside().kind;
  placed.platform = cluster->chip().platform;
  const auto& names = mesh.abstract_mesh().axis_names();
  for (size_t axis = 0; axis < names.size(); ++axis) {
    placed.axes.push_back({axis_label(names[axis]), mesh.abstract_mesh().axis_sizes()[static_cast<int64_t>(axis)], ""});
  }
  std::array<int64_t, 3> first{};
  std::array<int64_t, 3> last{};
  for (const Position position : IdRange<Position>(mesh.size())) {
    const int64_t id = (*mesh.devices())[position]->id().number();
    const ClusterPlace place = cluster->place_of(id);
    PlacedDevice device{id, place.slice, {}, place.core_on_chip};
    for (size_t axis = 0; axis < 3; ++axis) {
      device.at[axis] = place.coords[axis];
      first[axis] = position == Position(0) ? device.at[axis] : std::min(first[axis], device.at[axis]);
      last[axis] = std::max(last[axis], device.at[axis]);
    }
    placed.devices.push_back(device);
  }
  const SliceNetwork& inside = cluster->inside();
  for (size_t axis = 0; axis < inside.wraps.size(); ++axis) {
    placed.wraps[axis] = inside.wraps[axis] && last[axis] - first[axis] + 1 == inside.dims[axis];
  }
  return placed;
}

}  // namespace artifex_devices
