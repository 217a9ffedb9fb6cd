// SPDX-License-Identifier: Apache-2.0
// Primitives of operations on Arrays: shards as ndarrays, Arrays to write, changes of shape, and parallel work.
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/select_elements.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/memory_space.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/copy_views.h"
#include "artifex_devices/transfer/reinterpret.h"
#include "artifex_devices/transfer/reshard.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "page_lock_warning.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

constexpr const char* kReading = "NumPy operation";  // the caller's name is not known here

void wait_until_written(const Array& array) {
  array.check_alive(kReading);
  if (!array.is_ready()) {
    const ReleaseGil release;
    array.block_until_ready();
  } else {
    array.block_until_ready();  // rethrows the error of the transfer
  }
}

py::list local_arrays(const Array& array, bool writable, bool some) {
  wait_until_written(array);
  const Sharding& sharding = *array.sharding();
  if (!some) array.check_addressable(kReading);
  const ShardDomains domains = sharding.domains(array.shape(), kReading);
  py::list result(static_cast<size_t>(sharding.buffers().size()));
  Dims shape = domains.shard_shape();
  Dims strides = array.strides(shape);
  BlockOwner owner;
  for (const BufferId b : sharding.buffers().ids()) {
    if (!domains.is_even()) {
      shape = domains.domain(sharding.position_of(b)).shape;
      strides = array.strides(shape);
    }
    BufferRef buffer = array.storage()->buffer(array.is_shard() ? array.buffer_at(Position(0)) : b);
    PyList_SET_ITEM(
        result.ptr(), b.number(),
        ndarray_of_buffer(std::move(buffer), shape, strides, array.dtype(), writable, owner).release().ptr());
  }
  return result;
}

/// For each distinct buffer of an Array on CUDA devices: its `__cuda_array_interface__`, an owner and the GPU's number.
/// Returns None for other Arrays.
py::object gpu_buffers(const Array& array, bool writable, bool some) {
  wait_until_written(array);
  if (!some) array.check_addressable(kReading);
  const Sharding& sharding = *array.sharding();
  py::list result;
  for (const Shard& shard : sharding.shards(array.shape(), kReading)) {
    BufferRef buffer = array.storage()->buffer(array.buffer_at(shard.position));
    const MemorySpace* space = buffer.block->space();
    const int gpu = space == nullptr ? -1 : space->cuda_ordinal();
    if (gpu < 0) return py::none();
    const Dims& shape = shard.box.shape;
    HostView view{buffer.device_data(), array.dtype(), shape, array.strides(shape), writable};
    if (view.nbytes() == 0) view.data = nullptr;
    buffer.block->mark_as_exported();
    const py::capsule owner(new BlockRef(std::move(buffer.block)),
                            [](void* pointer) { delete static_cast<BlockRef*>(pointer); });
    result.append(py::make_tuple(cuda_interface(view), owner, gpu));
  }
  return result;
}

bool is_on_cuda(const Sharding& sharding) {
  const Client& client = *sharding.devices()->client();
  return client.copy_engine() != nullptr && !client.is_host_readable(sharding.memory_kind());
}

py::object slab_array(const Array& array, bool writable) {
  int64_t stride = 0;
  if (array.is_shard() || array.storage()->slab(&stride) == nullptr) return py::none();
  if (!array.sharding()->buffers().is_tile()) return py::none();  // other processes have other tiles
  if (is_on_cuda(*array.sharding())) return py::none();
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
  return ndarray_of_buffer(array.storage()->buffer(BufferId(0)), shape, strides, array.dtype(), writable);
}

ArrayRef empty(py::handle shape, py::handle dtype, const std::shared_ptr<Sharding>& sharding, bool committed,
               const std::string& operation) {
  check_placeable(*sharding, operation);
  const Dims dims = dims_from_python(shape, operation, "shape");
  const DType element = dtype_from_python(dtype, operation);
  auto storage = Storage::allocate(sharding, sharding->domains(dims, operation), element, operation);
  after_placing(*sharding);
  return Array::make(dims, element, sharding, std::move(storage), nullptr, committed);
}

// (parts of each dimension, positions, tiles, boxes as slices) of the distinct buffers of an array of `shape`.
py::tuple tiling(const Sharding& sharding, py::handle shape, const std::string& operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  const Shards shards = sharding.shards(dims, operation);
  const auto count = static_cast<size_t>(shards.size());
  py::tuple parts(static_cast<size_t>(dims.size()));
  for (int64_t d = 0; d < dims.size(); ++d) parts[static_cast<size_t>(d)] = shards.grid().parts(d);
  py::tuple positions(count);
  py::tuple tiles(count);
  py::tuple boxes(count);
  for (const Shard& shard : shards) {
    const int64_t b = shard.buffer.number();
    py::tuple box(static_cast<size_t>(dims.size()));
    for (int64_t d = 0; d < dims.size(); ++d) {
      box[static_cast<size_t>(d)] = py::slice(shard.box.origin[d], shard.box.origin[d] + shard.box.shape[d], 1);
    }
    positions[b] = shard.position.number();
    tiles[b] = shard.tile.number();
    boxes[b] = box;
  }
  return py::make_tuple(parts, positions, tiles, boxes);
}

py::tuple buffers_at(const Sharding& sharding, const py::sequence& positions) {
  py::tuple result(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto position = positions[i].cast<int64_t>();
    const BufferId buffer = sharding.buffer_at(Position(position));
    if (buffer.is_none()) {
      throw_error<NotAddressable>(
          "{}: position {} of {} belongs to another process than the current process {}; expected a position of this "
          "process",
          kReading, position, sharding.to_string(), sharding.devices()->client()->process_index().number());
    }
    result[i] = buffer.number();
  }
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
      "select: {} is not dense or not aligned; expected row-major memory, got strides {}; use np.ascontiguousarray(x)",
      argument, to_string(view.byte_strides));
}

// One part of np.where: dense arrays of one shape, or choices of shape ().
void select_into(py::handle out, py::handle condition, py::handle one, py::handle other, bool stream) {
  const HostView target = dense_view(out, "out");
  const HostView chosen = dense_view(condition, "condition");
  const HostView choices[] = {dense_view(one, "one"), dense_view(other, "other")};
  bool fits = target.writable && chosen.dtype == DType::kBool && chosen.shape == target.shape;
  for (const HostView& choice : choices) {
    fits = fits && choice.dtype == target.dtype && (choice.shape == target.shape || choice.shape.empty());
  }
  if (!fits)
    throw_error(
        "select: the operands do not fit; expected a bool for each element and choices of the shape and dtype of out");
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

// Raises the exception of a signal handler, with the exception `during`, if any, as its context.
[[noreturn]] void raise_interruption(const std::exception_ptr& interruption, py::object during) {
  if (during && PyErr_Occurred()) {
    py::object error = take_error();
    if (!error.is(during)) PyException_SetContext(error.ptr(), during.release().ptr());
    restore_error(std::move(error));
  }
  std::rethrow_exception(interruption);
}

// Calls every task once, on this thread and on workers that may enter Python. Raises the first exception after all have
// ended; after Ctrl-C the exception of its handler, with the first exception as its context.
void run_parallel(const py::list& tasks) {
  std::atomic<bool> failed{false};
  py::object error;  // written under the GIL
  const auto run_task = [&](int64_t i) {
    PyObject* result = PyObject_CallNoArgs(PyList_GET_ITEM(tasks.ptr(), i));
    if (result != nullptr) {
      Py_DECREF(result);
      return;
    }
    py::object raised = take_error();
    if (!failed.exchange(true)) error = raised;
  };
  const auto count = static_cast<int64_t>(tasks.size());
  std::exception_ptr interruption;
  if (Py_IsInitialized() == 0) {  // in a finalizer of the interpreter's end: workers cannot take the GIL
    for (int64_t i = 0; i < count && !failed; ++i) run_task(i);
  } else {
    try {
      const ReleaseGil release;
      WorkerPool::python().parallel_for(count, kAnyLane, [&](int64_t i) {
        if (!failed.load(std::memory_order_relaxed)) with_gil([&] { run_task(i); });
      });
    } catch (const std::exception&) {
      interruption = std::current_exception();
    }
  }
  if (interruption) raise_interruption(interruption, error);
  if (!error) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw py::error_already_set();
}

ArrayRef reinterpreted(const ArrayRef& array, py::handle shape, const ShardingRef& sharding,
                       const std::string& operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  return run_copy(!array->layout(), [&] { return reinterpret(array, dims, sharding, operation); });
}

void copy_ndarrays(const py::list& destinations, const py::list& sources) {
  if (destinations.size() != sources.size()) {
    throw_error("copy_views: {} destinations for {} sources; expected one for each", destinations.size(),
                sources.size());
  }
  std::vector<py::object> owners;
  std::vector<ViewCopy> copies;
  int64_t bytes = 0;
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (!is_ndarray(destinations[i])) throw_error<TypeMismatch>("copy_views: destination {} is not an ndarray", i);
    Leaf to = leaf_from_python(destinations[i], "copy_views");
    Leaf from = leaf_from_python(sources[i], "copy_views");
    bytes += to.view.nbytes();
    copies.push_back({std::move(to.view), std::move(from.view)});
    owners.push_back(std::move(from.keep));
  }
  run_copy(is_brief_copy(bytes), [&] { copy_views(copies); });
}

void bind_layout(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "reinterpreted", &reinterpreted, py::arg("array"), py::arg("shape"), py::arg("sharding"), py::arg("operation"),
      "Returns an Array of another shape on the same memory: each device's elements stay in place, in their order.");
  internal.def(
      "copy_views", &copy_ndarrays, py::arg("destinations"), py::arg("sources"),
      "Copies each source ndarray to the destination of its index, on several threads. They must not overlap.");
  internal.def(
      "supported_isas",
      [] { return make_list(supported_isas(), [](Isa isa) { return py::str(std::string(to_string(isa))); }); },
      "Returns the instruction sets that loops are compiled for and this processor supports, the oldest first.");
  internal.def(
      "copy_isa", [] { return std::string(to_string(active_isa())); }, "Returns the instruction set that copies use.");
  // For counts of instructions that are equal on every processor, and to find bugs of one instruction set.
  constexpr const char* kVariable = "ARTIFEX_DEVICES_COPY_ISA";
  if (const char* name = std::getenv(kVariable)) set_active_isa(name, kVariable);
}

}  // namespace

void bind_shards(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("local_arrays", &local_arrays, py::arg("array"), py::arg("writable") = false, py::arg("some") = false,
               R"(Returns an ndarray on each distinct buffer of an Array in this process.

Args:
    array: The Array. This process must hold all of its tiles unless `some` is set.
    writable: Whether the ndarrays may be written. Only the function that created the Array by empty() may set it.
    some: Whether other processes may hold some of the tiles.
)");
  internal.def(
      "gpu_buffers", &gpu_buffers, py::arg("array"), py::arg("writable") = false, py::arg("some") = false,
      R"(Returns (interface for CUDA, owner, number of the GPU) of each distinct buffer of an Array on CUDA devices, else None.

The arguments are the same as the arguments of local_arrays().
)");
  internal.def("is_on_cuda", &is_on_cuda, py::arg("sharding"),
               "Returns whether Arrays with a sharding are in the memory of CUDA devices.");
  internal.def("slab_array", &slab_array, py::arg("array"), py::arg("writable") = false,
               R"(Returns all tiles, in their order, as one ndarray of shape (tiles, *shard shape), or None.

It is None unless the tiles are in one slab of this process, each in one buffer.
)");
  internal.def("empty", &empty, py::arg("shape"), py::arg("dtype"), py::arg("sharding"), py::arg("committed"),
               py::arg("operation"),
               "Returns an uninitialized Array. The caller fills it by local_arrays(), slab_array() or "
               "StoredCheckpoint.read().");
  internal.def(
      "tiling", &tiling, py::arg("sharding"), py::arg("shape"), py::arg("operation"),
      "Returns (parts of each dimension, positions, tiles, boxes as slices) of the distinct buffers of an array.");
  internal.def(
      "covers",
      [](const Sharding& held, const Sharding& wanted, py::handle shape, const std::string& operation) {
        return held.covers(wanted, dims_from_python(shape, operation, "shape"), operation);
      },
      py::arg("held"), py::arg("wanted"), py::arg("shape"), py::arg("operation"),
      R"(Returns whether each device, of any process, already holds the part that `wanted` gives it.

Both shardings have the same devices in the same order.
)");
  internal.def(
      "holds_complete_runs",
      [](const Sharding& sharding, int64_t run) {
        return holds_complete_runs(sharding.grid(), *sharding.devices(), run);
      },
      py::arg("sharding"), py::arg("run"),
      "Returns whether the tiles that each process holds form complete runs of `run` consecutive tiles.");
  internal.def("buffers_at", &buffers_at, py::arg("sharding"), py::arg("positions"),
               "Returns the number of the buffer at each position.");
  internal.def("select", &select_into, py::arg("out"), py::arg("condition"), py::arg("one"), py::arg("other"),
               py::arg("stream"),
               "Writes `one` where `condition`, else `other`, to `out`: dense ndarrays, or choices of shape ().");
  internal.def("run_parallel", &run_parallel, py::arg("tasks"),
               "Calls each task once, on threads of the library and the calling thread. Raises the first exception.");
  bind_layout(module);
}

}  // namespace artifex_devices::bindings
