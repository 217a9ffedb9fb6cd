// SPDX-License-Identifier: Apache-2.0
#include "numpy_bridge.h"

#include <pybind11/numpy.h>

#include <array>
#include <atomic>
#include <optional>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/memory_space.h"
#include "errors.h"
#include "gil.h"
#include "python_arguments.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

const char* type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// DTypes by NumPy's type numbers; empty for types that devices do not support.
static_assert(sizeof(long) == 8, "NumPy's LONG is taken for int64");
constexpr std::array<std::optional<DType>, 24> kByTypeNumber = [] {
  std::array<std::optional<DType>, 24> table{};
  for (const DTypeRow& row : kDTypes) {
    if (row.numpy_number >= 0) table[static_cast<size_t>(row.numpy_number)] = row.dtype;
  }
  table[9] = DType::kInt64;  // LONGLONG, as long as LONG
  table[10] = DType::kUInt64;
  return table;
}();

[[noreturn]] void fail_dtype(py::handle descriptor, std::string_view operation) {
  const std::string text = py::str(descriptor);
  const char byteorder = descriptor.attr("byteorder").cast<char>();
  if (byteorder == '>') {
    throw_error<TypeMismatch>(
        "{}: dtype {} is in big-endian byte order; expected native byte order, got '>'; convert it first: "
        "x.astype(x.dtype.newbyteorder('='))",
        operation, text);
  }
  std::string_view repair = "convert it to numbers first, for example by x.astype(np.float32)";
  const char kind = descriptor.attr("kind").cast<char>();
  if (kind == 'M' || kind == 'm') repair = "pass its integer counts: x.view(np.int64)";
  if (kind == 'V') repair = "place each field by itself: {name: x[name] for name in x.dtype.names}";
  if (kind == 'f' || kind == 'c') repair = "convert it first: x.astype(np.float64) or np.complex128 loses digits";
  throw_error<TypeMismatch>(
      "{}: dtype {} is not supported on a device; expected a bool, integer, float or complex dtype of NumPy or "
      "ml_dtypes; {}",
      operation, text, repair);
}

DType dtype_from_descriptor(PyObject* descriptor, std::string_view operation) {
  const auto* proxy = py::detail::array_descriptor_proxy(descriptor);
  const int number = proxy->type_num;
  if (proxy->byteorder != '>') {
    if (number >= 0 && number < static_cast<int>(kByTypeNumber.size())) {
      if (const auto dtype = kByTypeNumber[static_cast<size_t>(number)]) return *dtype;
    } else if (number >= 256) {  // registered by a package; the names of ml_dtypes are unique
      const py::handle type = py::handle(descriptor).attr("type");
      if (std::string_view(type.attr("__module__").cast<std::string>()).starts_with("ml_dtypes")) {
        const auto dtype = dtype_from_name(type.attr("__name__").cast<std::string>());
        if (dtype && is_ml_dtype(*dtype)) return *dtype;
      }
    }
  }
  fail_dtype(descriptor, operation);
}

HostView view_of(const py::detail::PyArray_Proxy* array, DType dtype) {
  HostView view;
  view.data = array->data;
  view.dtype = dtype;
  const auto rank = static_cast<size_t>(array->nd);
  static_assert(sizeof(Py_intptr_t) == sizeof(int64_t));
  view.shape = Dims(std::span(reinterpret_cast<const int64_t*>(array->dimensions), rank));
  view.byte_strides = Dims(std::span(reinterpret_cast<const int64_t*>(array->strides), rank));
  view.writable = (array->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_) != 0;
  return view;
}

Leaf leaf_of_ndarray(py::object array, std::string_view operation) {
  const auto* proxy = py::detail::array_proxy(array.ptr());
  const DType dtype = dtype_from_descriptor(proxy->descr, operation);
  return {view_of(proxy, dtype), std::move(array)};
}

bool is_masked(py::handle object) {
  // Only subclasses are checked: plain arrays must not cost an import.
  return py::hasattr(object, "mask") && py::hasattr(object, "filled");
}

PyObject* ndarray_type() { return reinterpret_cast<PyObject*>(py::detail::npy_api::get().PyArray_Type_); }

}  // namespace

void load_numpy() { py::detail::npy_api::get(); }

bool is_ndarray(py::handle object) noexcept {
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == ndarray_type() ||
         py::detail::npy_api::get().PyArray_Check_(object.ptr());
}

void check_int(py::handle object, std::string_view operation) {
  int sign = 0;
  PyLong_AsLongLongAndOverflow(object.ptr(), &sign);
  if (sign == 0) return;
  if (sign > 0) {
    PyLong_AsUnsignedLongLong(object.ptr());
    if (!PyErr_Occurred()) return;
    PyErr_Clear();
  }
  const py::handle int_type(reinterpret_cast<PyObject*>(&PyLong_Type));
  const int64_t bits = int_type.attr("bit_length")(object).cast<int64_t>() + (sign < 0 ? 1 : 0);
  throw_error<OverflowError>(
      "{}: the Python int does not fit 64 bits; expected an int from -2**63 to 2**64 - 1, got one of {} bits; pass {}",
      operation, bits, bits <= 1024 ? "float(x), or several integers" : "several integers");
}

std::string leaf_repair(py::handle object) {
  PyObject* raw = object.ptr();
  if (PyUnicode_Check(raw) || PyBytes_Check(raw))
    return "leave text out, or convert numbers first, for example by np.asarray(x)";
  if (raw == Py_None) return "give an array";
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(raw)), "__dataclass_fields__") == 1) {
    return fmt::format("write @ad.tree_util.register_dataclass above the class {} to make its fields leaves",
                       type_name(object));
  }
  if (PyCallable_Check(raw)) return "call it, and place what it returns";
  if (Py_TYPE(raw)->tp_iter != nullptr) return "convert it first: np.array(list(x))";
  if ((Py_TYPE(raw)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
    return fmt::format(
        "convert it first, for example by np.asarray(x), or make {} a tree: a dataclass with "
        "@ad.tree_util.register_dataclass above it",
        type_name(object));
  }
  return "convert it first, for example by np.asarray(x)";
}

Leaf leaf_from_python(py::handle object, std::string_view operation) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == ndarray_type()) {
    return leaf_of_ndarray(py::reinterpret_borrow<py::object>(object), operation);
  }
  if (is_ndarray(object)) {
    if (is_masked(object)) {
      throw_error(
          "{}: a masked array cannot keep its mask on a device; expected an ndarray, got {}; pass x.filled(value), or "
          "x.data and x.mask as two leaves",
          operation, type_name(object));
    }
    return leaf_of_ndarray(py::reinterpret_borrow<py::object>(object), operation);
  }
  PyObject* raw = object.ptr();
  const bool is_number = PyBool_Check(raw) || PyLong_Check(raw) || PyFloat_Check(raw) || PyComplex_Check(raw);
  if (!is_number && (PyUnicode_Check(raw) || PyBytes_Check(raw) || raw == Py_None ||
                     (!py::hasattr(object, "__array__") && !PyObject_CheckBuffer(raw)))) {
    throw_error<TypeMismatch>(
        "{}: a leaf of type {} is not an array; expected a NumPy array, an Array, a number or a tree of such leaves; "
        "{}",
        operation, type_name(object), leaf_repair(object));
  }
  py::object array = py::reinterpret_steal<py::object>(py::detail::npy_api::get().PyArray_FromAny_(
      raw, nullptr, 0, 0, py::detail::npy_api::NPY_ARRAY_ENSUREARRAY_, nullptr));
  if (!array) throw py::error_already_set();
  if (PyLong_Check(raw)) check_int(object, operation);
  return leaf_of_ndarray(std::move(array), operation);
}

py::object numpy_dtype(DType dtype) {
  // Never freed: one object for each type.
  static std::array<std::atomic<PyObject*>, kDTypeCount> cache{};
  std::atomic<PyObject*>& entry = cache[static_cast<size_t>(dtype)];
  PyObject* known = entry.load(std::memory_order_acquire);
  if (known == nullptr) {
    const std::string text(name(dtype));
    py::object created;
    if (is_ml_dtype(dtype)) {
      created = py::module_::import("numpy").attr("dtype")(py::module_::import("ml_dtypes").attr(text.c_str()));
    } else {
      created = py::dtype(text);
    }
    // Creating it may have run code, or another thread, that created it too.
    if (entry.compare_exchange_strong(known, created.ptr())) known = created.release().ptr();
  }
  return py::reinterpret_borrow<py::object>(known);
}

DType dtype_from_python(py::handle object, std::string_view operation) {
  if (PyObject_TypeCheck(object.ptr(), py::detail::npy_api::get().PyArrayDescr_Type_)) {
    return dtype_from_descriptor(object.ptr(), operation);
  }
  const py::object numpy_dtype = py::module_::import("numpy").attr("dtype");
  py::object descriptor;
  try {
    descriptor = numpy_dtype(object);
  } catch (py::error_already_set& error) {
    if (error.type().ptr() != PyExc_TypeError) throw;
    throw_error<TypeMismatch>("{}: the argument is not a NumPy dtype ({}); expected a dtype such as np.float32",
                              operation, py::str(error.value()).cast<std::string>());
  }
  return dtype_from_descriptor(descriptor.ptr(), operation);
}

py::object ndarray_from_view(const std::shared_ptr<const HostView>& view) {
  const auto owner = new std::shared_ptr<const HostView>(view);
  const py::capsule base(owner, [](void* pointer) { delete static_cast<std::shared_ptr<const HostView>*>(pointer); });
  const auto shape = view->shape.span();
  const auto strides = view->byte_strides.span();
  py::array array(py::reinterpret_borrow<py::dtype>(numpy_dtype(view->dtype)),
                  std::vector<py::ssize_t>(shape.begin(), shape.end()),
                  std::vector<py::ssize_t>(strides.begin(), strides.end()), view->data, base);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

namespace {
constexpr const char* kBlockCapsule = "artifex_devices.block";
}  // namespace

py::object ndarray_of_buffer(BufferRef buffer, const Dims& shape, const Dims& byte_strides, DType dtype, bool writable,
                             BlockOwner& owner) {
  const MemorySpace* space = buffer.block->space();
  if (space != nullptr && !space->is_host_memory()) {
    throw_error<TypeMismatch>(
        "NumPy operation: the Array is in the memory of a GPU, where this operation does not run; expected host memory; "
        "move it by device_put(x, devices(\"cpu\")[0]), or read it by device_get(x)");
  }
  void* data = buffer.device_data();
  if (owner.block != buffer.block.operator->()) {
    owner.block = buffer.block.operator->();
    auto* held = new BlockRef(std::move(buffer.block));
    owner.capsule = py::capsule(held, kBlockCapsule, [](void* pointer) { delete static_cast<BlockRef*>(pointer); });
  }
  const auto& numpy = py::detail::npy_api::get();
  const int flags = writable ? py::detail::npy_api::NPY_ARRAY_WRITEABLE_ : 0;
  py::object array = py::reinterpret_steal<py::object>(numpy.PyArray_NewFromDescr_(
      reinterpret_cast<PyTypeObject*>(numpy.PyArray_Type_), numpy_dtype(dtype).release().ptr(),
      static_cast<int>(shape.size()), shape.span().data(), byte_strides.span().data(), data, flags, nullptr));
  if (!array) throw py::error_already_set();
  if (numpy.PyArray_SetBaseObject_(array.ptr(), Py_NewRef(owner.capsule.ptr())) != 0) throw py::error_already_set();
  return array;
}

py::dict cuda_interface(const HostView& view) {
  py::dict result;
  result["version"] = 3;
  result["shape"] = tuple_from_dims(view.shape);
  result["typestr"] = numpy_dtype(view.dtype).attr("str");
  result["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(view.data), !view.writable);
  const bool dense = is_dense(view.shape, view.byte_strides, itemsize(view.dtype));
  result["strides"] = dense ? py::none() : py::object(tuple_from_dims(view.byte_strides));
  result["stream"] = py::none();  // the value is complete
  return result;
}

NdarrayKind kind_of_ndarray(PyObject* object) noexcept {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != ndarray_type()) return {};
  const auto* proxy = py::detail::array_proxy(object);
  const bool is_dense = (proxy->flags & py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_) != 0;
  return {proxy->descr, {proxy->dimensions, static_cast<size_t>(proxy->nd)}, is_dense ? proxy->data : nullptr};
}

BlockRef block_of(py::handle ndarray) {
  PyObject* object = ndarray.ptr();
  while (object != nullptr && is_ndarray(object)) object = py::detail::array_proxy(object)->base;
  if (object == nullptr || !PyCapsule_IsValid(object, kBlockCapsule)) return {};
  return *static_cast<BlockRef*>(PyCapsule_GetPointer(object, kBlockCapsule));
}

py::object object_ndarray(const Dims& shape, const std::vector<py::object>& values) {
  const py::module_ numpy = py::module_::import("numpy");
  py::object array = numpy.attr("empty")(tuple_from_dims(shape), numpy.attr("dtype")("object"));
  auto* slots = reinterpret_cast<PyObject**>(py::detail::array_proxy(array.ptr())->data);
  for (size_t i = 0; i < values.size(); ++i) {
    Py_XDECREF(slots[i]);
    slots[i] = py::object(values[i]).release().ptr();
  }
  array.attr("flags").attr("writeable") = false;
  return array;
}

PyObject* const* dense_objects(PyObject* object, Dims* shape) {
  constexpr int kObject = 17;  // NumPy's type number of object
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != ndarray_type()) return nullptr;
  const auto* array = py::detail::array_proxy(object);
  const bool dense = (array->flags & py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_) != 0;
  if (!dense || py::detail::array_descriptor_proxy(array->descr)->type_num != kObject) return nullptr;
  *shape = Dims(std::span(reinterpret_cast<const int64_t*>(array->dimensions), static_cast<size_t>(array->nd)));
  return reinterpret_cast<PyObject* const*>(array->data);
}

std::pair<std::vector<py::object>, Dims> objects_from_nested(py::handle nested) {
  const py::module_ numpy = py::module_::import("numpy");
  const py::object array = numpy.attr("asarray")(nested, numpy.attr("dtype")("object"), py::arg("order") = "C");
  const auto* proxy = py::detail::array_proxy(array.ptr());
  auto* const* slots = reinterpret_cast<PyObject* const*>(proxy->data);
  const auto count = array.attr("size").cast<size_t>();
  std::vector<py::object> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    values.push_back(py::reinterpret_borrow<py::object>(slots[i] == nullptr ? Py_None : slots[i]));
  }
  return {std::move(values),
          Dims(std::span(reinterpret_cast<const int64_t*>(proxy->dimensions), static_cast<size_t>(proxy->nd)))};
}

py::object int64_ndarray(const Dims& shape, const std::vector<int64_t>& values) {
  const auto sizes = shape.span();
  py::array_t<int64_t> array(std::vector<py::ssize_t>(sizes.begin(), sizes.end()));
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

py::tuple tuple_from_dims(const Dims& dims) {
  py::tuple result(static_cast<size_t>(dims.size()));
  for (int64_t i = 0; i < dims.size(); ++i) {
    PyObject* const number = PyLong_FromLongLong(dims[i]);
    if (number == nullptr) throw py::error_already_set();
    PyTuple_SET_ITEM(result.ptr(), i, number);
  }
  return result;
}

int64_t index_from_python(py::handle object, std::string_view operation, std::string_view what) {
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
    throw_error<TypeMismatch>("{}: {} is of type {}; expected an int, got {}; pass an int such as 8", operation, what,
                              type_name(object), safe_repr(object));
  }
  const py::object number =
      py::reinterpret_steal<py::object>(sleeping_at_exit([&] { return PyNumber_Index(object.ptr()); }));
  if (!number) throw py::error_already_set();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) {
    throw_error("{}: {} does not fit 64 bits; expected at most {}, got {}; use a smaller number", operation, what,
                INT64_MAX, safe_repr(object));
  }
  return value;
}

Dims dims_from_python(py::handle object, std::string_view operation, std::string_view what) {
  Dims dims;
  // An ndarray claims to be an index too, so sequences are checked first.
  if (PyIndex_Check(object.ptr()) && !PySequence_Check(object.ptr()) && !PyBool_Check(object.ptr())) {
    dims.push_back(index_from_python(object, operation, what));
    return dims;
  }
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || !is_iterable(object)) {
    throw_error<TypeMismatch>("{}: {} is of type {}; expected a tuple of ints, got {}; write it as (8, 16)", operation,
                              what, type_name(object), safe_repr(object));
  }
  for_each_dimension(object, operation, what, [&](py::handle item) {
    dims.push_back(index_from_python(item, operation, fmt::format("{}[{}]", what, dims.size())));
  });
  return dims;
}

}  // namespace artifex_devices::bindings
