// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

std::vector<Device*> mesh_order(const Dims& sizes, std::vector<Device*> devices, std::string_view operation) {
  const int64_t positions = checked_product(sizes, operation);
  const auto count = static_cast<int64_t>(devices.size());
  if (positions != count) {
    throw_error(
        "{}: Number of devices {} must equal the product of mesh_shape {}; expected {} devices, got {}; change the "
        "shape or the devices",
        operation, count, to_string(sizes), positions, count);
  }
  // CPU devices of a domain have consecutive ids, so in the given order the last axes connect near devices.
  return devices;
}

MeshRef make_mesh(const Dims& sizes, std::vector<AxisName> names, std::vector<AxisType> types,
                  const std::vector<Device*>& devices, std::string_view operation) {
  AbstractMesh abstract(std::move(names), sizes, std::move(types));
  const auto count = static_cast<int64_t>(devices.size());
  if (abstract.size() > count) {
    throw_error(
        "{}: Number of devices {} must be >= the product of mesh_shape {}; expected at least {} devices, got {}; use a "
        "smaller mesh or more devices",
        operation, count, to_string(sizes), abstract.size(), count);
  }
  std::vector<Device*> first(devices.begin(), devices.begin() + abstract.size());
  auto ordered = mesh_order(sizes, std::move(first), operation);
  return Mesh::make(std::move(abstract), DeviceList::make(std::move(ordered), operation), operation);
}

MeshRef make_mesh(const Dims& sizes, std::vector<AxisName> names, std::vector<AxisType> types, const Client& client,
                  std::string_view operation) {
  int64_t needed = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > client.device_count() / needed) {
      needed = client.device_count();  // a wrong shape: the error states the number of all devices
      break;
    }
    needed *= size;
  }
  std::vector<Device*> devices;
  for (int64_t id = 0; id < needed; ++id) devices.push_back(client.device(id));
  return make_mesh(sizes, std::move(names), std::move(types), devices, operation);
}

}  // namespace artifex_devices
