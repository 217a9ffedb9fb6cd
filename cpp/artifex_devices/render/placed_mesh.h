// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// Location of one device of a mesh in its network.
struct PlacedDevice {
  int64_t id = 0;
  int64_t slice = 0;
  std::array<int64_t, 3> at{};  // chip: (x, y, z) in a torus, else (index in the slice, 0, 0)
  int64_t core = 0;             // index on the chip
};

/// One axis of a mesh.
struct PlacedAxis {
  std::string name;
  int64_t size = 1;
  std::string placement;  // network axes: "x: ring of 4"; "" where not known
};

/// A mesh with the locations of its devices, as input of placed_mesh_svg.
struct PlacedMesh {
  std::string title;
  std::vector<PlacedAxis> axes;
  NetworkKind network = NetworkKind::kSwitch;
  std::array<bool, 3> wraps{};        // of a torus: whether x, y and z wrap around
  std::string platform;               // "tpu"
  std::vector<PlacedDevice> devices;  // row-major over the axes
};

/// The locations of a mesh of a cluster's devices. An axis wraps where the cluster's axis does and the mesh covers all
/// of it. Throws InvalidArgument for a mesh without devices, and for devices that do not belong to a cluster.
PlacedMesh placed_mesh(const Mesh& mesh);

/// A mesh on its torus or nodes as a stand-alone SVG picture. For each axis, the devices at their locations: each group
/// along the axis has one colour, and each device its index along the axis. A 3-D torus has one block for each z. At
/// most `max_cells` devices are drawn (at least one block for each axis); notes report what is omitted. Example: a mesh
/// {data: 2, model: 4} on 4x2 chips in order of id: "data" has 4 colours, "model" 2. Throws InvalidArgument when the
/// product of the sizes is not the number of devices, or two devices share a location.
std::string placed_mesh_svg(const PlacedMesh& mesh, int max_cells = 2048);

}  // namespace artifex_devices
