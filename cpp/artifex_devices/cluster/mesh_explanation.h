// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/cluster/mesh_devices.h"

namespace artifex_devices {

/// Modelled network of one axis of a mesh.
struct AxisExplanation {
  int64_t size = 1;
  std::string links;     // "x: ring of 4", "z: line of 2, stride 2", "2 slices"
  int64_t slices = 1;    // spanned by one group of the axis, at most
  double bandwidth = 0;  // bytes/s into the worst-placed device; infinite for a size of 1
  int64_t hops = 0;      // links on the longest path inside a slice
  double seconds = 0;    // to gather the axis's traffic
};

/// Modelled network of the axes of a mesh, and of the same mesh with its devices in order of id.
struct MeshExplanation {
  std::string title;    // "8x8 on TPU v4 4x4x4 (torus, wraps on x, y, z)"
  std::string source;   // of the bandwidths, and which latencies are unknown and left out
  std::string network;  // "torus", "switch" or "full mesh"
  std::array<bool, 3> wraps{};
  std::vector<AxisExplanation> axes;
  std::vector<AxisExplanation> axes_by_id;
  std::vector<MeshDevice> places;  // for a picture; without a torus x is the device's number in its slice, by id
};

/// `devices` are in row-major order of the mesh; traffic[l] is the bytes gathered over axis l.
/// Model: an all-gather is bound by what the worst-placed device receives (rates_of). Behind a switch a device has its
/// egress, in a full mesh one link to each other member. Over several slices the members inside one share the bytes
/// that cross, and the slower of both counts. Throws InvalidArgument for a device that is in the mesh twice, for a
/// network or a bandwidth between slices that is not known, and for slices of different shapes; and as filled_torus.
MeshExplanation explain_mesh(const MeshDevices& devices, const Dims& shape, const std::vector<double>& traffic);

}  // namespace artifex_devices
