// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/cluster/torus_rates.h"

namespace artifex_devices {

/// Place of one device of a mesh.
struct MeshDevice {
  int64_t id = 0;
  std::array<int64_t, 3> coords{};
  int64_t core_on_chip = 0;
  int64_t slice_index = 0;
};

/// Texts of devices for error messages, by their position in MeshDevices. Called only to build a message.
struct MeshDeviceTexts {
  std::function<std::string(int64_t)> device;
  std::function<std::string(int64_t)> device_kind;
  std::function<std::string(const std::vector<int64_t>&)> list;
};

/// Devices to lay a mesh over, in the caller's order; at least one.
struct MeshDevices {
  std::string platform;     // "tpu", "gpu", ... of the last device, as in JAX
  std::string device_kind;  // of the last device
  std::vector<MeshDevice> devices;
  int64_t without_coords = -1;  // position of the first device without coordinates; -1 if all have them
  ClusterRef cluster;           // of all devices; nullptr if they have none in common
  MeshDeviceTexts texts;

  int64_t size() const noexcept { return static_cast<int64_t>(devices.size()); }
  bool has_coords() const noexcept { return without_coords < 0; }
  /// Throws InvalidArgument, naming the device, if one has no coordinates.
  void check_coords() const;
  /// Largest coordinates plus 1. Throws as check_coords.
  std::array<int64_t, 3> extent() const;
  /// 0, 1, ... size() - 1.
  std::vector<int64_t> positions() const;
  /// Positions in order of id; equal ids stay in order.
  std::vector<int64_t> positions_by_id() const;
};

/// The torus that TPU devices fill.
struct FilledTorus {
  std::vector<int64_t> dims;   // x, y, z, and cores of a chip where these are an axis of the torus
  std::vector<int64_t> order;  // for each place (row-major over dims) the position of its device
};

/// The torus that the devices at `positions` fill. Throws InvalidArgument for devices without coordinates, and
/// AssertionFailed, with JAX's texts, for a hole in the cuboid and for several devices on a chip newer than TPU v3
/// whose cores are not an axis of the torus.
FilledTorus filled_torus(const MeshDevices& devices, const std::vector<int64_t>& positions);

/// Links of the torus of `dims` that devices fill, and the source of the rate.
struct TorusLinks {
  Torus torus;         // 1 byte/s per link where the rate is not known
  std::string source;  // "" where the rate is not known
};
TorusLinks torus_links(const MeshDevices& devices, const std::vector<int64_t>& dims);

}  // namespace artifex_devices
