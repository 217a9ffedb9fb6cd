// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// Where one device of a mesh is in its network.
struct PlacedDevice {
  int64_t id = 0;
  int64_t slice = 0;
  std::array<int64_t, 3> at{};  // of its chip: x, y, z of a torus; else its number in the slice, 0, 0
  int64_t core = 0;             // on the chip
};

/// One axis of a mesh.
struct PlacedAxis {
  std::string name;
  int64_t size = 1;
  std::string lies_on;  // in words: "x: ring of 4"; "" where not known
};

/// A mesh with the places of its devices: all that a picture of it on its network needs.
struct PlacedMesh {
  std::string title;
  std::vector<PlacedAxis> axes;
  NetworkKind network = NetworkKind::kSwitch;
  std::array<bool, 3> wraps{};        // of a torus: whether the ends of x, y and z are joined
  std::string platform;               // "tpu"
  std::vector<PlacedDevice> devices;  // row-major over the axes
};

/// The places of a mesh of a cluster's devices. Ends are joined where the mesh has a whole axis of the cluster that
/// wraps. Throws InvalidArgument for a mesh without devices, and for devices that are no cluster's.
PlacedMesh placed_mesh(const Mesh& mesh);

/// A mesh on its torus, or on its nodes, as a stand-alone SVG picture: for each axis the devices where they are, those
/// that work together along it in one colour, with their place along it. Of a 3-D torus a block for each z. At most
/// `max_cells` devices are drawn (one block at least for each axis), and lines say what is left out.
/// Example: a mesh {data: 2, model: 4} on 4x2 chips in order of id: "data" has 4 colours, "model" 2.
/// Throws InvalidArgument where the sizes do not multiply to the number of devices, or two devices are at one place.
std::string placed_mesh_svg(const PlacedMesh& mesh, int max_cells = 2048);

}  // namespace artifex_devices
