// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/mesh_orders.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/torus_assignment.h"

namespace artifex_devices {
namespace {

std::vector<int64_t> sizes_of(const Dims& shape) { return {shape.begin(), shape.end()}; }

/// Axes of the torus, in the order that puts blocks of neighbours into one row of the mesh.
struct ContiguousSubmesh {
  Dims mesh;  // without axes of 1
  std::array<size_t, 3> axes;
};
struct ContiguousTorus {
  Dims dims;
  std::vector<ContiguousSubmesh> submeshes;
};

// Source: JAX 0.10.2.
const std::vector<ContiguousTorus>& contiguous_tori() {
  static const auto* tori = new std::vector<ContiguousTorus>{
      {{2, 2, 1}, {{{2, 2}, {0, 1, 2}}}},  {{2, 2, 4}, {{{4, 4}, {0, 1, 2}}}},
      {{4, 4, 4}, {{{16, 4}, {0, 2, 1}}}}, {{4, 8, 8}, {{{64, 4}, {0, 2, 1}}, {{4, 64}, {0, 2, 1}}}},
      {{8, 8, 8}, {{{64, 8}, {0, 2, 1}}}}, {{8, 16, 16}, {{{256, 8}, {0, 2, 1}}, {{8, 256}, {0, 2, 1}}}},
  };
  return *tori;
}

std::array<size_t, 3> contiguous_axes(const Dims& dims, const Dims& shape) {
  const auto& tori = contiguous_tori();
  const auto torus = std::ranges::find(tori, dims, &ContiguousTorus::dims);
  if (torus == tori.end()) {
    throw_error("create_device_mesh cannot create contiguous submeshes for physical mesh topology {}", to_string(dims));
  }
  Dims long_axes;
  std::vector<std::string> known;
  for (const int64_t size : shape) {
    if (size != 1) long_axes.push_back(size);
  }
  for (const ContiguousSubmesh& each : torus->submeshes) {
    if (each.mesh == long_axes) return each.axes;
    known.push_back(to_string(each.mesh));
  }
  throw_error(
      "create_device_mesh cannot create contiguous submeshes for mesh_shape {} and physical mesh topology {}. Available "
      "mesh_shapes: [{}]",
      to_string(shape), to_string(dims), fmt::join(known, ", "));
}

/// The same torus with its axes in the order of the contiguous submeshes.
FilledTorus transposed(const FilledTorus& torus, const Dims& shape) {
  const std::array<size_t, 3> axes = contiguous_axes(Dims(torus.dims), shape);
  const std::array<int64_t, 3> strides = {torus.dims[1] * torus.dims[2], torus.dims[2], 1};
  FilledTorus result;
  for (const size_t axis : axes) result.dims.push_back(torus.dims[axis]);
  result.order.reserve(torus.order.size());
  for (int64_t i = 0; i < result.dims[0]; ++i) {
    for (int64_t j = 0; j < result.dims[1]; ++j) {
      for (int64_t k = 0; k < result.dims[2]; ++k) {
        const int64_t place = i * strides[axes[0]] + j * strides[axes[1]] + k * strides[axes[2]];
        result.order.push_back(torus.order[static_cast<size_t>(place)]);
      }
    }
  }
  return result;
}

std::vector<int64_t> order_on(const FilledTorus& torus, const TorusAssignment& assignment) {
  std::vector<int64_t> order = order_of(assignment);
  for (int64_t& place : order) place = torus.order[static_cast<size_t>(place)];
  return order;
}

}  // namespace

std::vector<int64_t> jax_mesh_order(const MeshDevices& devices, const Dims& shape, bool contiguous_submeshes,
                                    bool allow_split_axes) {
  if (auto ring = fixed_ring_order(devices, shape)) return *std::move(ring);
  if (devices.platform == "gpu") return devices.positions_by_id();
  if (devices.platform != "tpu") return devices.positions();
  FilledTorus torus = filled_torus(devices, devices.positions());
  if (contiguous_submeshes) torus = transposed(torus, shape);
  const std::vector<int64_t> mesh = sizes_of(shape);
  AssignmentAttempt attempt = assign_whole_axes(torus.dims, mesh);
  if (!attempt.found && allow_split_axes) attempt = assign_split_axes(torus.dims, mesh);
  if (!attempt.found) {
    const int axis = attempt.stopped.logical_axis;
    // JAX's text, with its two blanks.
    throw_error<NotImplemented>(
        "Failed to find assignment for logical_axis_index {} of size {} with remaining assignable mesh [{}]. The size "
        "of each axis in your logical mesh must be equal to the product of some subset of the physical mesh axis sizes. "
        "E.g. logical mesh (4, 16) is compatible with physical mesh 4x4x4 since 4=4 and 16=4x4. If you want to split "
        "physical axes, set  allow_split_physical_axes to True.",
        axis, shape[axis], fmt::join(attempt.stopped.remaining, ", "));
  }
  return order_on(torus, *attempt.found);
}

std::vector<int64_t> exact_mesh_order(const MeshDevices& devices, const Dims& shape, const std::vector<double>& traffic,
                                      bool allow_split_axes) {
  if (devices.platform != "tpu") {
    throw_error(
        "create_device_mesh: search=\"exact\" is for the axes of a torus; expected TPU devices, got {} ones; leave "
        "search out",
        devices.platform);
  }
  const bool is_valid = static_cast<int64_t>(traffic.size()) == shape.size() &&
                        std::ranges::all_of(traffic, [](double each) { return std::isfinite(each) && each >= 0; });
  if (!is_valid) {
    throw_error(
        "create_device_mesh: traffic is ({}); expected {} finite numbers >= 0, one for each axis of mesh_shape {}; "
        "correct traffic",
        fmt::join(traffic, ", "), shape.size(), to_string(shape));
  }
  const FilledTorus torus = filled_torus(devices, devices.positions());
  TorusLinks links = torus_links(devices, torus.dims);
  links.torus.hop_latency = 0;
  const auto assignment = assign_exactly(links.torus, sizes_of(shape), traffic, allow_split_axes);
  if (!assignment) {
    throw_error<NotImplemented>(
        "create_device_mesh: there is no assignment of mesh_shape {} to the torus {} by {}; expected sizes that are "
        "products of its axes; {}",
        to_string(shape), fmt::join(torus.dims, "x"), allow_split_axes ? "splitting its axes" : "whole axes",
        allow_split_axes ? "choose other sizes" : "set allow_split_physical_axes to True");
  }
  return order_on(torus, *assignment);
}

std::vector<int64_t> hybrid_mesh_order(const std::vector<std::vector<int64_t>>& granule_orders, const Dims& inside,
                                       const Dims& outside) {
  const int64_t rank = std::max(inside.size(), outside.size());
  const auto padded = [&](const Dims& shape) {
    Dims result(rank - shape.size(), 1);
    for (const int64_t size : shape) result.push_back(size);
    return result;
  };
  const Dims near = padded(inside);
  const Dims far = padded(outside);
  const int64_t granules = checked_product(far, "create_hybrid_device_mesh");
  const int64_t places = checked_product(near, "create_hybrid_device_mesh");
  const bool fits = static_cast<int64_t>(granule_orders.size()) == granules &&
                    std::ranges::all_of(granule_orders, [&](const std::vector<int64_t>& each) {
                      return static_cast<int64_t>(each.size()) == places;
                    });
  if (!fits) {
    throw_error(
        "create_hybrid_device_mesh: {} granules do not fill {} meshes of {}; expected {} granules of {} devices each",
        granule_orders.size(), to_string(outside), to_string(inside), granules, places);
  }
  const int64_t count = granules * places;
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t granule = 0;
    int64_t place = 0;
    int64_t granule_stride = 1;
    int64_t place_stride = 1;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const int64_t index = rest % (near[d] * far[d]);
      rest /= near[d] * far[d];
      granule += index / near[d] * granule_stride;
      place += index % near[d] * place_stride;
      granule_stride *= far[d];
      place_stride *= near[d];
    }
    order.push_back(granule_orders[static_cast<size_t>(granule)][static_cast<size_t>(place)]);
  }
  return order;
}

}  // namespace artifex_devices
