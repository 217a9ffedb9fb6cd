// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/array/storage.h"
#include "artifex_devices/base/shape.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

bool is_ndarray(py::handle object) noexcept;

/// A leaf as host memory. `keep` owns that memory while the caller needs the view.
struct __attribute__((visibility("hidden"))) Leaf {
  HostView view;
  py::object keep;
};

/// Accepts ndarrays, NumPy and Python numbers, and objects with `__array__` or the buffer protocol. Throws TypeMismatch
/// for unsupported dtypes and for other objects, InvalidArgument for masked arrays. Needs the GIL.
Leaf leaf_from_python(py::handle object, std::string_view operation);

/// The fix that an error suggests for an object that is not an array.
std::string leaf_repair(py::handle object);

/// Loads NumPy's C interface. Its first use drops the GIL, which a thread that CPython ends at exit would not survive.
void load_numpy();

/// Throws OverflowError, with the number of bits, for a Python int that neither int64 nor uint64 holds. Needs the GIL.
void check_int(py::handle object, std::string_view operation);

/// A read-only ndarray on `view`, whose owner it keeps alive.
py::object ndarray_from_view(const std::shared_ptr<const HostView>& view);

/// The object that keeps a block alive for ndarrays; consecutive ndarrays of one block share it.
struct BlockOwner {
  const Block* block = nullptr;
  py::object capsule;
};

/// An ndarray on a buffer of the library, which it keeps alive by `owner`; `block_of` finds the buffer's block again.
py::object ndarray_of_buffer(BufferRef buffer, const Dims& shape, const Dims& byte_strides, DType dtype, bool writable,
                             BlockOwner& owner);
inline py::object ndarray_of_buffer(BufferRef buffer, const Dims& shape, const Dims& byte_strides, DType dtype,
                                    bool writable) {
  BlockOwner owner;
  return ndarray_of_buffer(std::move(buffer), shape, byte_strides, dtype, writable, owner);
}

/// The value of `__cuda_array_interface__` for memory of a GPU, which the caller keeps alive.
py::dict cuda_interface(const HostView& view);

/// The library's block that an ndarray shows, itself or through views; empty for other memory.
BlockRef block_of(py::handle ndarray);

/// np.dtype object of a DType; imports ml_dtypes only for its own types.
py::object numpy_dtype(DType dtype);

/// The DType of any argument of np.dtype(). Throws TypeMismatch.
DType dtype_from_python(py::handle object, std::string_view operation);

/// A read-only row-major ndarray of Python objects.
py::object object_ndarray(const Dims& shape, const std::vector<py::object>& values);

/// The slots, which may be null, and the shape of a dense ndarray of objects and of no subclass; null for anything
/// else.
PyObject* const* dense_objects(PyObject* object, Dims* shape);

/// A C-ordered flat list and the shape of an ndarray of objects made from `nested` (ndarray or nested sequences).
std::pair<std::vector<py::object>, Dims> objects_from_nested(py::handle nested);

/// A new int64 ndarray.
py::object int64_ndarray(const Dims& shape, const std::vector<int64_t>& values);

py::tuple tuple_from_dims(const Dims& dims);
/// A shape from a Python int or a sequence of ints (operator.index, but no bools). Throws TypeMismatch for other types
/// and InvalidArgument for ints beyond 64 bits, with `what` in the message.
Dims dims_from_python(py::handle object, std::string_view operation, std::string_view what);
int64_t index_from_python(py::handle object, std::string_view operation, std::string_view what);

/// The dtype, shape and row-major elements of an ndarray of no subclass, borrowed from it; no dtype for anything else.
struct NdarrayKind {
  PyObject* dtype = nullptr;
  std::span<const Py_ssize_t> shape;
  const void* dense = nullptr;  // null for elements in another order
};
NdarrayKind kind_of_ndarray(PyObject* object) noexcept;

}  // namespace artifex_devices::bindings
