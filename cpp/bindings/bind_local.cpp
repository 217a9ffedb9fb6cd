// SPDX-License-Identifier: Apache-2.0
// What operations on Arrays stand on: the memory of single shards as ndarrays, results to write, and work in parallel.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/select_elements.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/transfer/reshard.h"
#include "bind_cross_reshard.h"
#include "bindings.h"
#include "gil.h"
#include "memory_warning.h"
#include "numpy_bridge.h"

namespace artifex_devices::bindings {
namespace {

constexpr const char* kReading = "NumPy operation";  // functions and operators do not say which they are

void wait_until_written(const Array& array) {
  array.check_alive(kReading);
  if (!array.is_ready()) {
    const ReleaseGil release;
    array.block_until_ready();
  } else {
    array.block_until_ready();  // rethrows what went wrong
  }
}

/// What works on all tiles must not be handed some of them.
void check_every_tile(const Sharding& sharding, const Dims& shape) {
  if (sharding.buffers().has_every_tile()) return;
  throw_error<NotAddressable>(
      "{}: it needs parts of the Array of shape {} that lie in other processes than this one, {}; expected to find "
      "what it reads here, as element by element; write it as a shard_map with a collective, move the Array by "
      "device_put to a sharding that cuts nothing it reads, or gather it by multihost_utils.process_allgather",
      kReading, to_string(shape), sharding.devices()->client()->process_index());
}

py::list local_arrays(const Array& array, bool writable, bool some) {
  wait_until_written(array);
  const Sharding& sharding = *array.sharding();
  if (!some) check_every_tile(sharding, array.shape());
  const ShardDomains domains = sharding.domains(array.shape(), kReading);
  py::list result(static_cast<size_t>(sharding.buffers().size()));
  Dims shape = domains.shard_shape();
  Dims strides = array.strides(shape);
  for (int64_t b = 0; b < sharding.buffers().size(); ++b) {
    const int64_t position = sharding.buffers().position(sharding.grid(), b);
    if (!domains.is_even()) {
      shape = domains.domain(sharding.grid().tile(position)).shape;
      strides = array.strides(shape);
    }
    result[static_cast<size_t>(b)] = ndarray_of_buffer(array.storage()->buffer(array.buffer_number(position)), shape,
                                                       strides, array.dtype(), writable);
  }
  return result;
}

py::object slab_array(const Array& array, bool writable) {
  int64_t stride = 0;
  if (array.position_in_storage() >= 0 || array.storage()->slab(&stride) == nullptr) return py::none();
  if (!array.sharding()->buffers().is_tile()) return py::none();  // other processes have other tiles
  wait_until_written(array);
  const Sharding& sharding = *array.sharding();
  const ShardDomains domains = sharding.domains(array.shape(), kReading);
  if (!domains.is_even()) return py::none();
  const Dims inner = array.strides(domains.shard_shape());
  Dims shape{sharding.buffers().size()};
  Dims strides{stride};
  for (int64_t d = 0; d < inner.size(); ++d) {
    shape.push_back(domains.shard_shape()[d]);
    strides.push_back(inner[d]);
  }
  return ndarray_of_buffer(array.storage()->buffer(0), shape, strides, array.dtype(), writable);
}

ArrayRef empty(py::handle shape, py::handle dtype, const std::shared_ptr<Sharding>& sharding, bool committed,
               const std::string& operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  const DType element = dtype_from_python(dtype, operation);
  auto storage = Storage::allocate(sharding, sharding->domains(dims, operation), element, operation);
  after_placing(*sharding);
  return Array::make(dims, element, sharding, std::move(storage), nullptr, committed);
}

// (parts of each dimension, [position], [tile], [box as slices]) of the distinct buffers of a shape.
py::tuple tiling(const Sharding& sharding, py::handle shape, const std::string& operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  const ShardDomains domains = sharding.domains(dims, operation);
  const TileGrid& grid = sharding.grid();
  const auto count = static_cast<size_t>(sharding.buffers().size());
  py::tuple parts(static_cast<size_t>(dims.size()));
  for (int64_t d = 0; d < dims.size(); ++d) parts[static_cast<size_t>(d)] = grid.parts(d);
  py::tuple positions(count);
  py::tuple tiles(count);
  py::tuple boxes(count);
  for (size_t b = 0; b < count; ++b) {
    const int64_t position = sharding.buffers().position(grid, static_cast<int64_t>(b));
    const int64_t tile = grid.tile(position);
    const IndexDomain domain = domains.domain(tile);
    py::tuple box(static_cast<size_t>(dims.size()));
    for (int64_t d = 0; d < dims.size(); ++d) {
      box[static_cast<size_t>(d)] = py::slice(domain.origin[d], domain.origin[d] + domain.shape[d], 1);
    }
    positions[b] = position;
    tiles[b] = tile;
    boxes[b] = box;
  }
  return py::make_tuple(parts, positions, tiles, boxes);
}

py::tuple buffers_at(const Sharding& sharding, const py::sequence& positions) {
  py::tuple result(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto position = positions[i].cast<int64_t>();
    const int64_t buffer = sharding.buffers().buffer(sharding.grid(), position);
    if (buffer < 0) {
      throw_error<NotAddressable>(
          "{}: position {} of {} is of another process than this one, {}; expected one of this; ask there", kReading,
          position, sharding.to_string(), sharding.devices()->client()->process_index());
    }
    result[i] = buffer;
  }
  return result;
}

// Without a guard: the operation that needs it has asked already.
ArrayRef move_array(const ArrayRef& array, const std::shared_ptr<Sharding>& sharding, bool committed) {
  array->check_alive("reshard");
  ArrayRef result;
  if (!array->sharding()->is_fully_addressable() || !sharding->is_fully_addressable()) {
    result = bindings::moved(array, sharding, {.committed = committed});
  } else {
    const ReleaseGil release;
    result = reshard(array, sharding, {.committed = committed});
  }
  after_placing(*sharding);
  return result;
}

HostView dense_view(py::handle array, const char* argument) {
  HostView view = leaf_from_python(array, "select").view;
  const auto alignment = static_cast<uintptr_t>(std::min<int64_t>(itemsize(view.dtype), 8));
  if (is_dense(view.shape, view.byte_strides, itemsize(view.dtype)) &&
      reinterpret_cast<uintptr_t>(view.data) % alignment == 0) {
    return view;
  }
  throw_error(
      "select: {} is not dense or not aligned; expected row-major memory, got strides {}; make it contiguous first",
      argument, to_string(view.byte_strides));
}

// One part of np.where: dense arrays of one shape, or a choice of shape () for all.
void select_into(py::handle out, py::handle condition, py::handle one, py::handle other, bool stream) {
  const HostView target = dense_view(out, "out");
  const HostView chosen = dense_view(condition, "condition");
  const HostView choices[] = {dense_view(one, "one"), dense_view(other, "other")};
  bool fits = target.writable && chosen.dtype == DType::kBool && chosen.shape == target.shape;
  for (const HostView& choice : choices) {
    fits = fits && choice.dtype == target.dtype && (choice.shape == target.shape || choice.shape.empty());
  }
  if (!fits)
    throw_error("select: the operands do not fit; expected a bool a place and choices of out's shape and dtype");
  const int64_t elements = checked_product(target.shape, "select");
  const auto as_choice = [&](const HostView& view) { return SelectOperand{view.data, view.shape != target.shape}; };
  bool done = false;
  {
    const ReleaseGil release;
    done = select_elements(target.data, static_cast<const uint8_t*>(chosen.data), as_choice(choices[0]),
                           as_choice(choices[1]), elements, itemsize(target.dtype), stream);
    if (stream) stream_fence();
  }
  if (!done) throw_error<TypeMismatch>("select: elements of {} bytes are not handled", itemsize(target.dtype));
}

// Calls every task once, on workers that may enter Python and this thread. The first exception is raised here once all
// have ended.
void run_parallel(const py::list& tasks) {
  std::atomic<bool> failed{false};
  PyObject* error = nullptr;  // owned; written under the GIL
  {
    const ReleaseGil release;
    WorkerPool::python().parallel_for(static_cast<int64_t>(tasks.size()), -1, [&](int64_t i) {
      if (failed.load(std::memory_order_relaxed)) return;
      const AcquireGil gil;
      if (!gil.acquired()) return;
      PyObject* result = PyObject_CallNoArgs(PyList_GET_ITEM(tasks.ptr(), i));
      if (result != nullptr) {
        Py_DECREF(result);
        return;
      }
      PyObject* type = nullptr;
      PyObject* value = nullptr;
      PyObject* trace = nullptr;
      PyErr_Fetch(&type, &value, &trace);
      PyErr_NormalizeException(&type, &value, &trace);
      if (trace != nullptr) PyException_SetTraceback(value, trace);
      Py_XDECREF(type);
      Py_XDECREF(trace);
      if (failed.exchange(true)) {
        Py_XDECREF(value);
      } else {
        error = value;
      }
    });
  }
  if (error == nullptr) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
  throw py::error_already_set();
}

}  // namespace

void bind_local(py::module_& module) {
  module.def("_local_arrays", &local_arrays, py::arg("array"), py::arg("writable") = false, py::arg("some") = false,
             "An ndarray on each distinct buffer of an Array; writable only for who has just made it by _empty. Those "
             "of this process, which must have all tiles unless `some` will do.");
  module.def("_slab_array", &slab_array, py::arg("array"), py::arg("writable") = false,
             "All buffers as one ndarray of shape (buffers, *shard shape) where they lie in one slab, else None; also "
             "where other processes have some.");
  module.def("_empty", &empty, py::arg("shape"), py::arg("dtype"), py::arg("sharding"), py::arg("committed"),
             py::arg("operation"), "An Array whose memory is to be written through _local_arrays or _slab_array.");
  module.def("_moved", &move_array, py::arg("array"), py::arg("sharding"), py::arg("committed"),
             "The Array in another layout of the same world; buffers that are right already are shared.");
  module.def("_tiling", &tiling, py::arg("sharding"), py::arg("shape"), py::arg("operation"),
             "(parts a dimension, positions, tiles, boxes as slices) of the distinct buffers of an array.");
  module.def("_buffers_at", &buffers_at, py::arg("sharding"), py::arg("positions"),
             "The number of the buffer at each position.");
  module.def("_select", &select_into, py::arg("out"), py::arg("condition"), py::arg("one"), py::arg("other"),
             py::arg("stream"), "out = one where condition, else other, for dense ndarrays or choices of shape ().");
  module.def("_run_parallel", &run_parallel, py::arg("tasks"),
             "Calls each of a list once, on threads of the library and this one; raises the first exception.");
}

}  // namespace artifex_devices::bindings
