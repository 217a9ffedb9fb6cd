// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/cluster/mesh_devices.h"

namespace artifex_devices {

/// The order of JAX 0.10.2's create_device_mesh: for each place of a mesh of `shape` (row-major) the position of its
/// device. Small TPU slices have the order of a known ring; a larger torus is divided by assign_whole_axes and, with
/// `allow_split_axes`, by assign_split_axes. GPUs are sorted by id; other devices stay in order. With
/// `contiguous_submeshes` the devices of a TPU host are one block.
/// Throws JAX's errors with JAX's texts: InvalidArgument where the sizes do not multiply to the number of devices or no
/// contiguous submeshes are known, NotImplemented where there is no assignment, AssertionFailed as filled_torus.
/// Example: 16 chips of a 2x2x4 TPU v4 in a 4x4 mesh, by id: 0, 2, 1, 3, 4, 6, 5, 7, ...
std::vector<int64_t> jax_mesh_order(const MeshDevices& devices, const Dims& shape, bool contiguous_submeshes,
                                    bool allow_split_axes);

/// The order with the least modelled time to gather `traffic[l]` bytes over each axis l (assign_exactly). Throws
/// InvalidArgument for devices other than TPUs and for traffic that is not one finite number >= 0 for each axis, and
/// NotImplemented where there is no assignment.
std::vector<int64_t> exact_mesh_order(const MeshDevices& devices, const Dims& shape, const std::vector<double>& traffic,
                                      bool allow_split_axes);

/// The order of a mesh over several granules (slices or processes) of equal size: `granule_orders[g]` has the positions
/// of granule g for each place of a mesh of `inside`. Granules follow each other along the axes of `outside`; the
/// shorter shape gets leading axes of 1. The mesh has the shape inside * outside. Throws InvalidArgument if
/// the granules do not fill the mesh. Example: granules {0, 1} and {2, 3} with
/// inside (2, 1) and outside (1, 2) are 0, 2, 1, 3.
std::vector<int64_t> hybrid_mesh_order(const std::vector<std::vector<int64_t>>& granule_orders, const Dims& inside,
                                       const Dims& outside);

/// The order of a small TPU slice for which JAX has a fixed ring through all chips; nothing for other devices.
std::optional<std::vector<int64_t>> fixed_ring_order(const MeshDevices& devices, const Dims& shape);

}  // namespace artifex_devices
