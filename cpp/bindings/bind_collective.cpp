// SPDX-License-Identifier: Apache-2.0
// What collectives under shard_map stand on: arithmetic over members' blocks, memory for results, and Arrays made of
// what bodies returned.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/collective/halves.h"
#include "artifex_devices/collective/reduce.h"
#include "artifex_devices/device/arena.h"
#include "artifex_devices/transfer/copy_batch.h"
#include "bindings.h"
#include "gil.h"
#include "memory_warning.h"
#include "numpy_bridge.h"
#include "python_owner.h"
#include "reduction_name.h"
#include "world.h"

namespace artifex_devices::bindings {

Reduction reduction_from_name(const std::string& kind) {
  if (kind == "sum") return Reduction::kSum;
  if (kind == "prod") return Reduction::kProduct;
  if (kind == "max") return Reduction::kMax;
  if (kind == "min") return Reduction::kMin;
  throw_error("all_reduce: there is no reduction {:?}; expected sum, prod, max or min; choose one of them", kind);
}

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
  if (!target.writable) throw_error("all_reduce: out is read-only; expected memory to write; make it by _host_empty");
  const int64_t bytes = checked_bytes(target.shape, target.dtype, "all_reduce") *
                        static_cast<int64_t>(views.size() + 1);  // read and written
  if (copies_with_gil(bytes)) return all_reduce(reduction, views, target);
  const ReleaseGil release;
  all_reduce(reduction, views, target);
}

void divide_into(const py::object& array, float by) {
  const HostView view = leaf_from_python(array, "divide").view;
  if (!view.writable) throw_error("divide: the array is read-only; expected memory to write; make it by _host_empty");
  if (copies_with_gil(checked_bytes(view.shape, view.dtype, "divide"))) return divide_in_place(view, by);
  const ReleaseGil release;
  divide_in_place(view, by);
}

// A dense leaf of floats of 16 bits, and the float32 that it is to become.
struct HalvesAndFloats {
  HostView halves;
  ArithmeticType type;
  float* floats;
};

HalvesAndFloats halves_and_floats(const char* operation, const py::object& array, const py::object& out,
                                  int64_t count) {
  const HostView view = leaf_from_python(array, operation).view;
  const HostView target = leaf_from_python(out, operation).view;
  const bool is_half = view.dtype == DType::kFloat16 || view.dtype == DType::kBFloat16;
  if (!is_half || !is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) {
    throw_error("{}: expected dense float16 or bfloat16, got {}{}", operation, name(view.dtype), to_string(view.shape));
  }
  if (target.dtype != DType::kFloat32 || !target.writable || checked_product(target.shape, operation) != count ||
      !is_dense(target.shape, target.byte_strides, itemsize(target.dtype))) {
    throw_error("{}: out does not fit; expected dense float32 to write, of {} elements, got {}{}", operation, count,
                name(target.dtype), to_string(target.shape));
  }
  return {view, view.dtype == DType::kFloat16 ? ArithmeticType::kFloat16 : ArithmeticType::kBFloat16,
          static_cast<float*>(target.data)};
}

// An array of floats of 16 bits, reduced in float32 over its dimensions [first, last) into `out`.
void fold_dimensions(const std::string& kind, const py::object& array, int64_t first, int64_t last,
                     const py::object& out) {
  const Reduction reduction = reduction_from_name(kind);
  const Dims shape = leaf_from_python(array, "reduce").view.shape;
  if (first < 0 || first >= last || last > shape.size()) {
    throw_error("reduce: expected dimensions 0 <= first < last <= {}, got {} and {}", shape.size(), first, last);
  }
  int64_t sizes[3] = {1, 1, 1};  // outer, reduced, inner
  for (int64_t d = 0; d < shape.size(); ++d) sizes[d < first ? 0 : d < last ? 1 : 2] *= shape[d];
  const auto [halves, type, floats] = halves_and_floats("reduce", array, out, sizes[0] * sizes[2]);
  if (sizes[1] == 0) throw_error("reduce: there is nothing to reduce in {}; expected 1 or more", to_string(shape));
  if (copies_with_gil(checked_bytes(shape, halves.dtype, "reduce"))) {
    return fold(reduction, type, halves.data, sizes[0], sizes[1], sizes[2], floats);
  }
  const ReleaseGil release;
  fold(reduction, type, halves.data, sizes[0], sizes[1], sizes[2], floats);
}

void widen_into(const py::object& array, const py::object& out) {
  const int64_t count = checked_product(leaf_from_python(array, "widen").view.shape, "widen");
  const auto [halves, type, floats] = halves_and_floats("widen", array, out, count);
  if (copies_with_gil(count * itemsize(halves.dtype))) return widen(type, halves.data, count, floats);
  const ReleaseGil release;
  widen(type, halves.data, count, floats);
}

py::object host_empty(py::handle shape, py::handle dtype) {
  const Dims dims = dims_from_python(shape, "host_empty", "shape");
  const DType element = dtype_from_python(dtype, "host_empty");
  const int64_t bytes = checked_bytes(dims, element, "host_empty");
  const auto client = current_client();
  BufferRef buffer{client->shared_arena(*client->default_device(), bytes).allocate(bytes), 0};
  return ndarray_of_buffer(std::move(buffer), dims, row_major_strides(dims, itemsize(element)), element, true);
}

// Whether an ndarray lies in memory of Arrays or of results, and neither it nor any that it is a view of can be
// written.
bool is_constant(const py::object& array) {
  for (py::object each = array; is_ndarray(each); each = each.attr("base")) {
    if (each.attr("flags").attr("writeable").cast<bool>()) return false;
  }
  return static_cast<bool>(block_of(array));
}

// The memory of one part as a buffer of an Array: shared where it is ours and nobody can write it, or where the caller
// gives it away; none where it must be copied.
BufferRef buffer_of_part(const py::object& part, const HostView& view, bool given, MemoryKind kind) {
  const auto address = reinterpret_cast<uintptr_t>(view.data);
  const auto alignment = static_cast<uintptr_t>(std::min<int64_t>(itemsize(view.dtype), 16));  // malloc's
  if (!is_dense(view.shape, view.byte_strides, itemsize(view.dtype)) || address % alignment != 0) return {};
  if (BlockRef block = block_of(part); block && (given || !view.writable)) {
    const bool fits = block->is_foreign() ? kind != MemoryKind::kPinnedHost : block->arena()->kind() == kind;
    if (!fits) return {};
    const int64_t offset = static_cast<const std::byte*>(view.data) - block->data();
    return {std::move(block), offset};
  }
  if (!given || kind == MemoryKind::kPinnedHost) return {};  // what is not ours is not locked
  int64_t bytes = itemsize(view.dtype);
  for (const int64_t size : view.shape) bytes *= size;
  part.attr("flags").attr("writeable") = false;
  return {foreign_block(view.data, bytes, [owner = python_owner(part)] {}), 0};
}

// An Array out of one ndarray for each distinct buffer. `given`: which of them nobody else has a reference to.
ArrayRef adopt(py::handle shape, py::handle dtype, const std::shared_ptr<Sharding>& sharding, const py::list& parts,
               const std::vector<bool>& given, const std::string& operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  const DType element = dtype_from_python(dtype, operation);
  const ShardDomains domains = sharding->domains(dims, operation);
  const auto count = static_cast<size_t>(sharding->buffers().size());
  if (parts.size() != count || given.size() != count) {
    throw_error("{}: {} parts for a sharding with {} distinct buffers; expected one each; give them in that order",
                operation, parts.size(), count);
  }
  std::vector<BufferRef> memory(count);
  std::vector<HostView> views(count);
  for (size_t b = 0; b < count; ++b) {
    const auto position = sharding->buffers().position(sharding->grid(), static_cast<int64_t>(b));
    const Dims expected =
        domains.is_even() ? domains.shard_shape() : domains.domain(sharding->grid().tile(position)).shape;
    views[b] = leaf_from_python(parts[b], operation).view;
    if (views[b].shape != expected || views[b].dtype != element) {
      throw_error("{}: part {} does not fit; expected {}{}, got {}{}; change what the body returns", operation, b,
                  name(element), to_string(expected), name(views[b].dtype), to_string(views[b].shape));
    }
    memory[b] = buffer_of_part(parts[b], views[b], given[b], sharding->memory_kind());
  }
  std::vector<bool> is_shared(count);
  for (size_t b = 0; b < count; ++b) is_shared[b] = static_cast<bool>(memory[b].block);
  auto storage = Storage::adopt(sharding, domains, element, std::move(memory), operation);
  CopyBatch batch;
  for (size_t b = 0; b < count; ++b) {
    if (is_shared[b]) continue;
    const int64_t size = itemsize(element);
    if (checked_product(views[b].shape, operation) == 0) continue;
    batch.add(StridedCopy(storage->data(static_cast<int64_t>(b)), row_major_strides(views[b].shape, size),
                          static_cast<const std::byte*>(views[b].data), views[b].byte_strides, views[b].shape, size),
              -1);
  }
  if (copies_with_gil(batch.bytes())) {
    batch.run();
  } else {
    const ReleaseGil release;
    batch.run();
  }
  after_placing(*sharding);
  return Array::make(dims, element, sharding, std::move(storage), nullptr, true);
}

}  // namespace

void bind_collective(py::module_& module) {
  module.def(
      "_all_reduce", &reduce_into, py::arg("kind"), py::arg("inputs"), py::arg("out"),
      "out = the inputs combined in their order, element by element; sum, prod, max or min. Strided ones are copied.");
  module.def("_divide", &divide_into, py::arg("array"), py::arg("by"),
             "Divides a dense array of floats of 16 bits in place, each number in float32.");
  module.def("_fold", &fold_dimensions, py::arg("kind"), py::arg("array"), py::arg("first"), py::arg("last"),
             py::arg("out"), "Floats of 16 bits reduced in float32 over dimensions [first, last).");
  module.def("_widen", &widen_into, py::arg("array"), py::arg("out"), "Floats of 16 bits as float32.");
  module.def("_host_empty", &host_empty, py::arg("shape"), py::arg("dtype"),
             "An ndarray to write, on memory of the library's cache.");
  module.def("_is_constant", &is_constant, py::arg("array"),
             "Whether an ndarray shows memory of Arrays or results that nobody can write.");
  module.def("_adopt", &adopt, py::arg("shape"), py::arg("dtype"), py::arg("sharding"), py::arg("parts"),
             py::arg("given"), py::arg("operation"),
             "An Array out of one ndarray a distinct buffer, sharing memory where nobody else can write it.");
}

}  // namespace artifex_devices::bindings
