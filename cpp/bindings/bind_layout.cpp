// SPDX-License-Identifier: Apache-2.0
// What the functions that change shapes stand on: the same memory under another shape, and copies of strided views.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/copy_batch.h"
#include "artifex_devices/transfer/reshard.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"

namespace artifex_devices::bindings {
namespace {

// Who calls it knows that each shard's elements are the same in the same order; here only the bytes are counted.
ArrayRef reinterpreted(const ArrayRef& given, py::handle shape, const ShardingRef& sharding,
                       const std::string& operation) {
  given->check_alive(operation);
  const ArrayRef in_order = [&] {
    if (!given->layout()) return given;
    const ReleaseGil release;
    return row_major(given);
  }();
  const Array& array = *in_order;
  const Dims dims = dims_from_python(shape, operation, "shape");
  const ShardDomains domains = sharding->domains(dims, operation);
  const ShardDomains old_domains = array.sharding()->domains(array.shape(), operation);
  if (sharding->devices()->client() != array.sharding()->devices()->client() ||
      sharding->num_devices() != array.sharding()->num_devices()) {
    throw_error("{}: a shape of the same memory is for the same devices; expected {} of them, got {}", operation,
                array.sharding()->num_devices(), sharding->num_devices());
  }
  const auto elements_at = [](const Sharding& of, const ShardDomains& parts, int64_t position) {
    return checked_product(parts.is_even() ? parts.shard_shape() : parts.domain(of.grid().tile(position)).shape,
                           "reinterpret");
  };
  const int64_t count = sharding->buffers().size();
  std::vector<BufferRef> buffers;
  buffers.reserve(static_cast<size_t>(count));
  for (int64_t b = 0; b < count; ++b) {
    const int64_t position = sharding->buffers().position(sharding->grid(), b);
    const int64_t expected = elements_at(*array.sharding(), old_domains, position);
    const int64_t got = elements_at(*sharding, domains, position);
    if (expected != got) {
      throw_error(
          "{}: the shard at position {} has {} elements in shape {} and {} in shape {}; expected the same number",
          operation, position, expected, to_string(array.shape()), got, to_string(dims));
    }
    const int64_t number = array.buffer_number(position);
    if (number < 0) {
      throw_error<NotAddressable>(
          "{}: the shard at position {} is in another process; expected the same devices in one order, got {} and {}; "
          "move it by device_put",
          operation, position, array.sharding()->to_string(), sharding->to_string());
    }
    buffers.push_back(array.storage()->buffer(number));
  }
  auto storage = Storage::adopt(sharding, domains, array.dtype(), std::move(buffers), operation);
  return Array::make(dims, array.dtype(), sharding, std::move(storage), array.ready_event(), array.committed());
}

void copy_views(const py::list& destinations, const py::list& sources) {
  if (destinations.size() != sources.size()) {
    throw_error("copy_views: {} destinations for {} sources; give one for each", destinations.size(), sources.size());
  }
  std::vector<Leaf> held;
  held.reserve(destinations.size() * 2);
  CopyBatch batch;
  batch.reserve(static_cast<int64_t>(destinations.size()));
  int64_t bytes = 0;
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (!is_ndarray(destinations[i])) {
      throw_error<TypeMismatch>("copy_views: destination {} is no ndarray; expected a view; index with [..., ...]", i);
    }
    held.push_back(leaf_from_python(destinations[i], "copy_views"));
    held.push_back(leaf_from_python(sources[i], "copy_views"));
    const HostView& to = held[2 * i].view;
    const HostView& from = held[2 * i + 1].view;
    if (!to.writable || to.dtype != from.dtype || to.shape != from.shape) {
      throw_error("copy_views: view {} is {} of shape {} from {} of shape {}; expected a writable one that is alike", i,
                  name(to.dtype), to_string(to.shape), name(from.dtype), to_string(from.shape));
    }
    bytes += checked_product(to.shape, "copy_views") * itemsize(to.dtype);
  }
  for (size_t i = 0; i < held.size(); i += 2) {
    const HostView& to = held[i].view;
    const HostView& from = held[i + 1].view;
    batch.add(StridedCopy(to.data, to.byte_strides, from.data, from.byte_strides, to.shape, itemsize(to.dtype), bytes),
              -1);
  }
  if (copies_with_gil(bytes)) return batch.run();
  const ReleaseGil release;
  batch.run();
}

}  // namespace

void bind_layout(py::module_& module) {
  module.def("_reinterpreted", &reinterpreted, py::arg("array"), py::arg("shape"), py::arg("sharding"),
             py::arg("operation"),
             "An Array of another shape on the same memory: each device's elements stay as they are, in their order.");
  module.def("_copy_views", &copy_views, py::arg("destinations"), py::arg("sources"),
             "Copies each ndarray of a list to its like in another, on several threads; they must not overlap.");
  module.def(
      "_copy_isas",
      [] {
        py::list names;
        for (const Isa isa : supported_isas()) names.append(py::str(std::string(to_string(isa))));
        return names;
      },
      "Instruction sets that copies are compiled for and this processor runs, least first.");
  module.def("_copy_isa", [] { return std::string(to_string(active_isa())); }, "The one that copies use.");
  module.def(
      "_use_copy_isa", [](const std::string& name) { set_active_isa(name, "_use_copy_isa"); }, py::arg("name"),
      "Lets all later copies use one of them.");
  // For counts of instructions that are the same on every processor, and to look for faults of one set.
  constexpr const char* kVariable = "ARTIFEX_DEVICES_COPY_ISA";
  if (const char* name = std::getenv(kVariable)) set_active_isa(name, kVariable);
}

}  // namespace artifex_devices::bindings
