// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/device_list.h"
#include "artifex_devices/partition/abstract_mesh.h"

namespace artifex_devices {

/// Devices arranged over named axes, row-major: position p of the abstract mesh is devices()[p]. Immutable and
/// interned: equal meshes that exist at the same time are one object.
class Mesh {
 public:
  /// Throws InvalidArgument unless there are exactly abstract.size() devices. `operation` begins the message.
  static std::shared_ptr<const Mesh> make(AbstractMesh abstract, DeviceListRef devices, std::string_view operation);

  /// The mesh without axes and devices; size 0, as JAX's empty mesh.
  static std::shared_ptr<const Mesh> make_empty();

  /// Number of existing meshes, without the empty one.
  static int64_t live_count();

  const AbstractMesh& abstract_mesh() const noexcept { return abstract_; }
  /// Null for the empty mesh.
  const DeviceListRef& devices() const noexcept { return devices_; }
  bool empty() const noexcept { return devices_ == nullptr; }
  int64_t size() const noexcept { return devices_ ? devices_->size() : 0; }
  /// Whether some devices belong to other processes.
  bool is_multi_process() const noexcept { return devices_ && !devices_->is_fully_addressable(); }

  /// JAX's repr: "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
  std::string to_string() const;
  /// "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
  std::string repr() const;
  size_t hash() const noexcept { return hash_; }
  friend bool operator==(const Mesh& a, const Mesh& b) noexcept;

 private:
  Mesh() = default;
  AbstractMesh abstract_;
  DeviceListRef devices_;
  size_t hash_ = 0;
};

using MeshRef = std::shared_ptr<const Mesh>;

/// The mesh over the first prod(sizes) of `devices`, in their order (cluster/mesh_orders.h has orders for networks).
/// Throws InvalidArgument if there are fewer devices.
MeshRef make_mesh(const Dims& sizes, std::vector<AxisName> names, std::vector<AxisType> types,
                  const std::vector<Device*>& devices, std::string_view operation);
/// The same over the first devices of a client; a small mesh of a big client costs no more than its own devices.
MeshRef make_mesh(const Dims& sizes, std::vector<AxisName> names, std::vector<AxisType> types, const Client& client,
                  std::string_view operation);

/// The box of the mesh that has the devices of this process; in a mesh of one process the mesh itself. As in JAX the
/// box must have no other devices: throws InvalidArgument where it has, or where this process has no device. Example:
/// the mesh (2, 4) over two processes of four devices each gives each process a mesh (1, 4).
MeshRef local_mesh(const MeshRef& mesh);

}  // namespace artifex_devices
