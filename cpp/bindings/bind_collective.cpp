// SPDX-License-Identifier: Apache-2.0
// Primitives of collectives under shard_map: arithmetic over members' blocks, memory for results, and Arrays from the
// results of bodies.
#include <pybind11/stl.h>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/collective/reduce.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/transfer/adopt.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/exchange_messages.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "page_lock_warning.h"
#include "pybind.h"
#include "python_owner.h"
#include "world.h"

namespace artifex_devices::bindings {

namespace {

void reduce_into(const std::string& kind, const py::list& inputs, const py::object& out) {
  const Reduction reduction = reduction_from_name(kind);
  std::vector<HostView> views;
  views.reserve(inputs.size());
  std::vector<py::object> copies;
  for (const py::handle input : inputs) {
    HostView view = leaf_from_python(input, "all_reduce").view;
    if (!is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) {
      copies.push_back(py::module_::import("numpy").attr("ascontiguousarray")(input));
      view = leaf_from_python(copies.back(), "all_reduce").view;
    }
    views.push_back(std::move(view));
  }
  const HostView target = leaf_from_python(out, "all_reduce").view;
  if (!target.writable)
    throw_error("all_reduce: out is read-only; expected writable memory; allocate it by _host_empty");
  const auto count = static_cast<int64_t>(views.size() + 1);  // read and written
  const int64_t bytes = checked_bytes(target.shape, target.dtype, "all_reduce") * count;
  run_copy(is_brief_copy(bytes), [&] { all_reduce(reduction, views, target); });
}

void divide_into(const py::object& array, float by) {
  const HostView view = leaf_from_python(array, "divide").view;
  if (!view.writable)
    throw_error("divide: the array is read-only; expected writable memory; allocate it by _host_empty");
  run_copy(is_brief_copy(view.nbytes()), [&] { divide_in_place(view, by); });
}

void fold_into(const std::string& kind, const py::object& array, int64_t first, int64_t last, const py::object& out) {
  const Reduction reduction = reduction_from_name(kind);
  const HostView view = leaf_from_python(array, "reduce").view;
  const HostView target = leaf_from_python(out, "reduce").view;
  run_copy(is_brief_copy(view.nbytes()), [&] { fold_dimensions(reduction, view, first, last, target); });
}

void widen_into(const py::object& array, const py::object& out) {
  const HostView view = leaf_from_python(array, "widen").view;
  const HostView target = leaf_from_python(out, "widen").view;
  run_copy(is_brief_copy(view.nbytes()), [&] { widen(view, target); });
}

py::object host_empty(py::handle shape, py::handle dtype) {
  const Dims dims = dims_from_python(shape, "host_empty", "shape");
  const DType element = dtype_from_python(dtype, "host_empty");
  const int64_t bytes = checked_bytes(dims, element, "host_empty");
  BufferRef buffer{packing_space(*current_client(), bytes).allocate(bytes), 0};
  return ndarray_of_buffer(std::move(buffer), dims, row_major_strides(dims, itemsize(element)), element, true);
}

// Whether an ndarray shows memory of the library, and neither it nor its bases can be written.
bool is_constant(const py::object& array) {
  for (py::object each = array; is_ndarray(each); each = each.attr("base")) {
    if (each.attr("flags").attr("writeable").cast<bool>()) return false;
  }
  return static_cast<bool>(block_of(array));
}

// The memory of a part for an Array to share: the library's own memory if it cannot change any more, or memory that the
// caller gives away. Without a block where the part must be copied.
BufferRef shared_memory(const py::object& part, const HostView& view, bool is_given_away, const MemorySpace& space) {
  BlockRef block = block_of(part);
  if (block && !is_given_away && view.writable) block = {};
  if (!block && !is_given_away) return {};
  if (!can_adopt(view, block.operator->(), space)) return {};
  if (block) {
    const int64_t offset = static_cast<const std::byte*>(view.data) - block->device_data();
    return {std::move(block), offset};
  }
  part.attr("flags").attr("writeable") = false;
  return {foreign_block(view.data, view.nbytes(), [owner = python_owner(part)] {}), 0};
}

// An Array from one ndarray for each distinct buffer. `given_away`: a bool for each ndarray, whether it has no other
// reference.
ArrayRef adopt_ndarrays(py::handle shape, py::handle dtype, const std::shared_ptr<Sharding>& sharding,
                        const py::list& ndarrays, const py::list& given_away, std::string_view operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  const DType element = dtype_from_python(dtype, operation);
  std::vector<AdoptedPart> parts;
  int64_t copied_bytes = 0;
  for (size_t i = 0; i < ndarrays.size(); ++i) {
    AdoptedPart& part = parts.emplace_back(AdoptedPart{leaf_from_python(ndarrays[i], operation).view});
    const BufferId buffer(static_cast<int64_t>(i));
    if (buffer.number() >= sharding->buffers().size()) continue;  // adopt() refuses the number of parts
    const Device& device = sharding->device(buffer);
    const bool is_given_away = py::object(given_away[i]).ptr() == Py_True;
    part.memory = shared_memory(ndarrays[i], part.view, is_given_away, device.space(sharding->memory_kind()));
    if (!part.memory.block) copied_bytes += part.view.nbytes();
  }
  ArrayRef result = run_copy(is_brief_copy(copied_bytes, *sharding),
                             [&] { return adopt(dims, element, sharding, std::move(parts), operation); });
  after_placing(*sharding);
  return result;
}

}  // namespace

void bind_collective(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("all_reduce", &reduce_into, py::arg("kind"), py::arg("inputs"), py::arg("out"),
               R"(Combines the inputs in their order, element by element, into `out`. Strided inputs are copied.

`kind` is "sum", "prod", "max" or "min".
)");
  internal.def("divide", &divide_into, py::arg("array"), py::arg("by"),
               "Divides a dense array of 16-bit floats in place, each number in float32.");
  internal.def("fold", &fold_into, py::arg("kind"), py::arg("array"), py::arg("first"), py::arg("last"), py::arg("out"),
               "Reduces 16-bit floats in float32 over dimensions [first, last).");
  internal.def("widen", &widen_into, py::arg("array"), py::arg("out"), "Converts 16-bit floats to float32.");
  internal.def("host_empty", &host_empty, py::arg("shape"), py::arg("dtype"),
               "Returns a writable ndarray in memory of the library's cache; locked by CUDA in a world of its GPUs.");
  internal.def("is_constant", &is_constant, py::arg("array"),
               "Returns whether an ndarray is a view of the library's memory, and neither it nor its bases can be "
               "written.");
  internal.def(
      "adopt", &adopt_ndarrays, py::arg("shape"), py::arg("dtype"), py::arg("sharding"), py::arg("parts"),
      py::arg("given"), py::arg("operation"),
      "Returns an Array from one ndarray for each distinct buffer, sharing memory where no one else can write it.");
}

}  // namespace artifex_devices::bindings
