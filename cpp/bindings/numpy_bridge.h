// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/array/storage.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

bool is_ndarray(py::handle object) noexcept;

/// A leaf as host memory. `keep` holds what owns that memory for as long as the caller needs the view.
struct __attribute__((visibility("hidden"))) Leaf {
  HostView view;
  py::object keep;
};

/// Takes ndarrays, NumPy and Python numbers, and objects with `__array__` or the buffer protocol. Throws TypeMismatch
/// for dtypes that no device holds and for what is no array; InvalidArgument for masked arrays. Needs the GIL.
Leaf leaf_from_python(py::handle object, std::string_view operation);

/// A read-only ndarray on `view`; it keeps the view's owner.
py::object ndarray_from_view(const std::shared_ptr<const HostView>& view);

/// A dense ndarray on memory of ours, which it keeps; `block_of` finds that memory again.
py::object ndarray_of_buffer(BufferRef buffer, const Dims& shape, const Dims& byte_strides, DType dtype, bool writable);

/// The memory of ours that an ndarray shows, itself or through views; an empty one for other memory.
BlockRef block_of(py::handle ndarray);

/// np.dtype object of a DType; imports ml_dtypes only for its own types.
py::object numpy_dtype(DType dtype);

/// The DType of anything np.dtype() takes. Throws TypeMismatch.
DType dtype_from_python(py::handle object, std::string_view operation);

/// An ndarray of Python objects, row-major, read-only.
py::object object_ndarray(const Dims& shape, const std::vector<py::object>& values);

/// The slots of an exact, dense ndarray of objects, and its shape; null for anything else. No copy; slots may be null.
PyObject* const* dense_objects(PyObject* object, Dims* shape);

/// A C-ordered flat list and the shape of an ndarray of objects made from `nested` (ndarray or nested sequences).
std::pair<std::vector<py::object>, Dims> objects_from_nested(py::handle nested);

/// A new int64 ndarray.
py::object int64_ndarray(const Dims& shape, const std::vector<int64_t>& values);

py::tuple tuple_from_dims(const Dims& dims);
/// A shape or sizes from a Python int or sequence of ints (operator.index; bool refused).
/// Throws TypeError naming `what` for floats and text, OverflowError becomes InvalidArgument.
Dims dims_from_python(py::handle object, std::string_view operation, std::string_view what);
int64_t index_from_python(py::handle object, std::string_view operation, std::string_view what);

/// The dtype and shape of an object that is an ndarray and of no subclass; no dtype for all others. Borrowed from it.
struct NdarrayKind {
  PyObject* dtype = nullptr;
  std::span<const Py_ssize_t> shape;
};
NdarrayKind kind_of_ndarray(PyObject* object) noexcept;

}  // namespace artifex_devices::bindings
