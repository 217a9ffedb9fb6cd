// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

MeshRef local_mesh(const MeshRef& mesh) {
  if (!mesh->is_multi_process()) return mesh;
  const DeviceList& devices = *mesh->devices();
  const AbstractMesh& axes = mesh->abstract_mesh();
  const Dims& sizes = axes.axis_sizes();
  const int64_t count = devices.addressable_count();
  if (count == 0) {
    throw_error(
        "local_mesh: {} has no device of this process, {}; expected at least one; call it in one of the processes {}",
        mesh->to_string(), devices.client()->process_index().number(), fmt::join(numbers(devices.processes()), ", "));
  }
  const Dims strides = row_major_strides(sizes, 1);
  Dims begin = sizes;
  Dims end(sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < sizes.size(); ++d) {
      const int64_t at = devices.addressable_position(i).number() / strides[d] % sizes[d];
      begin[d] = std::min(begin[d], at);
      end[d] = std::max(end[d], at + 1);
    }
  }
  Dims shape(sizes.size(), 0);
  int64_t volume = 1;
  for (int64_t d = 0; d < sizes.size(); ++d) volume *= shape[d] = end[d] - begin[d];
  if (volume != count) {
    throw_error(
        "local_mesh: the {} devices of process {} in {} are not a box of the mesh; expected a box, got parts of one of "
        "shape {}; order the devices of the mesh by process, as make_mesh does",
        count, devices.client()->process_index().number(), mesh->to_string(), to_string(shape));
  }
  std::vector<Device*> own;  // in row-major order already: positions ascend
  for (int64_t i = 0; i < count; ++i) own.push_back(devices[devices.addressable_position(i)]);
  return Mesh::make(AbstractMesh(axes.axis_names(), shape, axes.axis_types()), DeviceList::make(own, "local_mesh"),
                    "local_mesh");
}

}  // namespace artifex_devices
