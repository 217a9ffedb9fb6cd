// SPDX-License-Identifier: Apache-2.0

#include "array_methods.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/dlpack.h"
#include "artifex_devices/transfer/reshard.h"
#include "errors.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

// --- Buffer protocol
// ----------------------------------------------------------------------------------------------------------------

/// Sets a BufferError and returns -1 if the Array has no buffer. Not a C++ exception: np.asarray tries the buffer
/// before __array__.
int refuse_buffer(const Array& array, int flags) {
  if (array.is_deleted()) {
    PyErr_SetString(
        PyExc_BufferError,
        "memoryview: the Array was deleted; expected a live one; place it again, or take the view before deleting it");
    return -1;
  }
  if (array.sharding()->num_devices() != 1) {
    PyErr_SetString(PyExc_BufferError,
                    "memoryview: the Array is on several devices; expected one device; use its value, np.asarray(x), "
                    "or a shard, x.addressable_shards[0].data");
    return -1;
  }
  if (!array.is_host_readable()) {
    PyErr_Format(PyExc_BufferError,
                 "memoryview: the Array is in the memory of %s, which the host cannot read; expected host memory; use "
                 "its value: device_get(x)",
                 array.sharding()->devices()->front()->to_string().c_str());
    return -1;
  }
  if (row_of(array.dtype()).buffer_format == nullptr) {
    PyErr_Format(PyExc_BufferError,
                 "memoryview: the buffer protocol has no format for dtype %s; expected a dtype of NumPy itself; use "
                 "the bytes: np.asarray(x).view(np.uint8)",
                 std::string(name(array.dtype())).c_str());
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError,
                    "memoryview: an Array is immutable; expected a request for reading, got a request for writing; use "
                    "a copy: np.array(x)");
    return -1;
  }
  return 0;
}

using HostValue = std::shared_ptr<const HostView>;

int fill_buffer(const py::handle self, const ArrayRef& array, Py_buffer* view, int flags) {
  if (refuse_buffer(*array, flags) != 0) return -1;
  HostValue value = device_get_if_ready(array);  // one device: no copy
  if (!value) {
    const ReleaseGil release;
    value = device_get(array);
  }
  view->buf = value->data;
  view->itemsize = itemsize(value->dtype);
  view->len = array->nbytes();
  view->readonly = 1;
  view->ndim = static_cast<int>(value->shape.size());
  // The protocol's arrays are not const, but consumers only read them.
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(row_of(value->dtype).buffer_format) : nullptr;
  const bool dims = (flags & PyBUF_ND) != 0;
  const bool strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  view->shape = dims ? const_cast<Py_ssize_t*>(value->shape.span().data()) : nullptr;
  view->strides = strides ? const_cast<Py_ssize_t*>(value->byte_strides.span().data()) : nullptr;
  view->suboffsets = nullptr;
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && PyBuffer_IsContiguous(view, 'F') == 0) {
    PyErr_SetString(PyExc_BufferError,
                    "memoryview: the Array is not column-major; expected a request for its own order, got a request "
                    "for column-major; use np.asfortranarray(x)");
    return -1;
  }
  const bool row_major = !array->layout() || is_dense(value->shape, value->byte_strides, itemsize(value->dtype));
  if (!row_major && (!strides || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)) {
    PyErr_Format(PyExc_BufferError,
                 "memoryview: the Array is stored as %s; expected a request for strides, got a request for row-major "
                 "memory; use np.ascontiguousarray(x)",
                 array->layout()->to_string().c_str());
    return -1;
  }
  view->internal = new HostValue(std::move(value));
  view->obj = self.inc_ref().ptr();
  return 0;
}

extern "C" int get_array_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "memoryview: view is null; expected a Py_buffer");
    return -1;
  }
  view->obj = nullptr;
  try {
    static_cast<void>(py::handle(self).cast<const Array&>());  // raises where __init__ has not run
    return fill_buffer(self, py::handle(self).cast<ArrayRef>(), view, flags);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const Interrupted&) {
    set_error_of_exception();
    raise_again_if_dropped();  // NumPy drops the errors of this slot, and calls __array__
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

extern "C" void release_array_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<HostValue*>(view->internal);
  view->internal = nullptr;
}

// --- Copies and pickles
// ----------------------------------------------------------------------------------------------------------------

/// A copy with the same sharding in new memory; does not depend on the current world.
ArrayRef copy_of(const ArrayRef& array) {
  array->check_alive("copy");
  const ReleaseGil release;
  return reshard(array, array->sharding(), {.committed = array->committed(), .donate = false, .force_copy = true});
}

py::tuple reduced(const py::object& self) {
  const auto array =
      value_from_python<Array>(self, "Array.__reduce__", "self", "an Array", "device_put(x)").shared_from_this();
  array->check_alive("pickle");
  if (!array->sharding()->is_fully_addressable()) {
    throw_error<Unavailable>(
        "pickle: the Array of shape {} is on devices of several processes; expected devices of this process, as a "
        "pickle holds the global array; pickle the shards of each process: x.addressable_shards",
        to_string(array->shape()));
  }
  return pickled_by("array", value_of(array, "pickle"), self.attr("sharding"), self.attr("committed"),
                    array->layout() ? py::cast(array->layout()->to_string()) : py::none());
}

/// Raises AttributeError for arrays that other libraries cannot read through CUDA; hasattr() is then False.
py::object cuda_array_interface(const ArrayRef& array) {
  const char* problem = nullptr;
  if (array->is_deleted()) {
    problem = "the Array was deleted; expected a live one; place it again";
  } else if (cuda_ordinal(*array) < 0) {
    problem =
        "the Array is not on one CUDA device; expected one of devices(\"cuda\"); move it by device_put, or pass a shard: "
        "x.addressable_shards[0].data";
  } else if (is_ml_dtype(array->dtype())) {
    problem = "the interface has no type for this dtype; expected a dtype of NumPy itself; use from_dlpack(x)";
  }
  if (problem != nullptr) {
    PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: %s", problem);
    throw py::error_already_set();
  }
  const auto view = without_gil([&] { return cuda_view(array); });
  return cuda_interface(*view);
}

}  // namespace

void bind_array_interop(py::class_<Array, std::shared_ptr<Array>>& array) {
  auto* type = reinterpret_cast<PyHeapTypeObject*>(array.ptr());
  type->as_buffer.bf_getbuffer = &get_array_buffer;
  type->as_buffer.bf_releasebuffer = &release_array_buffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;
  PyType_Modified(&type->ht_type);

  array.def("__copy__", [](Array& self) { return copy_of(self.shared_from_this()); })
      .def(
          "__deepcopy__", [](const ArrayRef& self, py::handle) { return copy_of(self); }, py::arg("memo"))
      .def("__reduce__", &reduced)
      .def("__dlpack__", &dlpack_of, py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
           R"(Returns a DLPack capsule on the memory of an Array on one device, without a copy unless copy=True.

The memory is host memory, or GPU memory for an Array on a CUDA device. The value is complete: no `stream` has to wait for
it. Before the memory is released, the library waits for GPU work that its consumers have started.

The consumer's view keeps the memory alive, even after delete(). From DLPack 1.0 on (max_version) the capsule is marked
read-only; consumers of older versions must not write either.

Raises:
    BufferError: The Array is on several devices or emulated GPUs, or dl_device is not where it is.
    RuntimeError: The Array was deleted, or a stream is given for memory of the host.
    ValueError: `stream` is 0, which CUDA has two meanings for.
    TypeError: max_version or dl_device is not a pair of ints.
)")
      .def("__dlpack_device__", &dlpack_device_of,
           "Returns DLPack's numbers for the memory: (1, 0) for host memory, (2, n) for the memory of CUDA "
           "device n.")
      .def_property_readonly(
          "__cuda_array_interface__", &cuda_array_interface,
          "Address, shape, strides and dtype of an Array on one CUDA device, version 3 of the interface: read-only, and "
          "complete. Raises AttributeError for other Arrays.");
}

}  // namespace artifex_devices::bindings
