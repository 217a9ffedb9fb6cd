// SPDX-License-Identifier: Apache-2.0
// XLA's Layout and PjRtLayout: the order of elements in memory.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/layout_copy.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "safe_repr.h"

namespace artifex_devices::bindings {
namespace {

/// A layout as a runtime returns it.
struct PjRtLayout {
  Layout layout;
  friend bool operator==(const PjRtLayout&, const PjRtLayout&) = default;
};

void check_sequence(py::handle object, const char* what, const char* expected) {
  if (PySequence_Check(object.ptr()) && !PyUnicode_Check(object.ptr()) && !PyBytes_Check(object.ptr())) return;
  throw_error<TypeMismatch>("Layout: {} is of type {}; expected {}, got {}; write Layout((1, 0), [(8, 128)])", what,
                            Py_TYPE(object.ptr())->tp_name, expected, safe_repr(object));
}

Layout make_layout(py::handle minor_to_major, py::handle tiling, py::handle element_size_in_bits) {
  check_sequence(minor_to_major, "minor_to_major", "a sequence of ints");
  check_sequence(tiling, "tiling", "a sequence of tiles");
  std::vector<Dims> tiles;
  for (const py::handle tile : py::reinterpret_borrow<py::iterable>(tiling)) {
    if (std::ssize(tiles) > Layout::kMaxTiles) break;  // the constructor raises
    const std::string what = fmt::format("tiling[{}]", tiles.size());
    check_sequence(tile, what.c_str(), "a tuple of ints");
    const Py_ssize_t sizes = PySequence_Size(tile.ptr());
    if (sizes < 0) throw py::error_already_set();
    if (sizes > Layout::kMaxRank)
      throw_error("Layout: {} has {} sizes; expected at most {}; combine them", what, sizes, Layout::kMaxRank);
    tiles.push_back(dims_from_python(tile, "Layout", what));
  }
  return {dims_from_python(minor_to_major, "Layout", "minor_to_major"), std::move(tiles),
          index_from_python(element_size_in_bits, "Layout", "element_size_in_bits")};
}

py::list tiling_of(const Layout& self) {
  py::list result;
  for (const Dims& tile : self.tiles()) result.append(tuple_from_dims(tile));
  return result;
}

template <class Work>
void without_gil_if_big(int64_t bytes, Work&& work) {
  if (copies_with_gil(bytes * 8)) return work();  // an unpacked element of one bit takes a byte
  const ReleaseGil release;
  work();
}

py::object new_ndarray(const Dims& shape, DType dtype) {
  return py::module_::import("numpy").attr("empty")(tuple_from_dims(shape), numpy_dtype(dtype));
}

py::object pack(const Layout& self, py::handle x) {
  const Leaf source = leaf_from_python(x, "Layout.pack");
  const int64_t bytes = self.byte_size(source.view.shape, source.view.dtype, "Layout.pack");
  py::object memory = new_ndarray({bytes}, DType::kUInt8);
  const Leaf target = leaf_from_python(memory, "Layout.pack");
  without_gil_if_big(bytes, [&] { copy_to_layout(source.view, self, static_cast<std::byte*>(target.view.data)); });
  return memory;
}

/// Contiguous bytes of an object with a buffer.
class Bytes {
 public:
  explicit Bytes(py::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) == 0) return;
    clear_refused_buffer();
    throw_error<TypeMismatch>(
        "Layout.unpack: memory is of type {}; expected contiguous bytes: bytes, a memoryview or an ndarray of uint8; "
        "pass np.ascontiguousarray(x).view(np.uint8)",
        Py_TYPE(object.ptr())->tp_name);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&view_); }
  const std::byte* data() const { return static_cast<const std::byte*>(view_.buf); }
  int64_t size() const { return view_.len; }

 private:
  Py_buffer view_{};
};

py::object unpack(const Layout& self, py::handle memory, py::handle shape, py::handle dtype) {
  const Dims dims = dims_from_python(shape, "Layout.unpack", "shape");
  const DType element = dtype_from_python(dtype, "Layout.unpack");
  const Bytes bytes(memory);
  const int64_t expected = self.byte_size(dims, element, "Layout.unpack");
  if (bytes.size() != expected) {
    throw_error(
        "Layout.unpack: memory has {} bytes; expected {} for shape {} of {} in {}; pass the bytes of the whole array",
        bytes.size(), expected, to_string(dims), name(element), self.to_string());
  }
  py::object result = new_ndarray(dims, element);
  const Leaf target = leaf_from_python(result, "Layout.unpack");
  without_gil_if_big(expected, [&] { copy_from_layout(bytes.data(), self, target.view); });
  return result;
}

void bind_layout_text(py::class_<Layout>& layout) {
  layout.def("to_string", &Layout::to_string, "Returns XLA's text of the layout, such as '{1,0:T(8,128)}'.")
      .def("__str__", &Layout::to_string)
      .def("__repr__", [](const Layout& self) { return "Layout.parse('" + self.to_string() + "')"; })
      .def_static(
          "parse", [](const std::string& text) { return Layout::parse(text); }, py::arg("text"),
          R"(Returns the Layout of XLA's text: minor_to_major, then tiles T, tail alignment L, element bits E, memory space S.

Raises:
    ValueError: The text has another form, or is too long; the message names the position. Parts of sparse layouts, split and
        physical shapes are not supported.

Example:
    >>> from artifex_devices.xla_client import Layout
    >>> Layout.parse("{1,0:T(8,128)(2,1)}").tiling()
    [(8, 128), (2, 1)]
)")
      .def("__eq__",
           [](const Layout& self, py::handle other) {
             return py::isinstance<Layout>(other) && self == other.cast<const Layout&>();
           })
      .def("__hash__", [](const Layout& self) { return self.hash() >> 2; })
      .def("__reduce__", [](const Layout& self) -> py::tuple {
        return py::make_tuple(py::module_::import(python_modules::kUnpickle).attr("layout"),
                              py::make_tuple(self.to_string()));
      });
}

void bind_layout_memory(py::class_<Layout>& layout) {
  layout
      .def(
          "physical_shape",
          [](const Layout& self, py::handle shape) {
            return tuple_from_dims(self.physical_shape(dims_from_python(shape, "Layout.physical_shape", "shape"),
                                                       "Layout.physical_shape"));
          },
          py::arg("shape"),
          R"(Returns the shape of the row-major array in memory, padding included.

Raises:
    ValueError: `shape` has another rank, or is too large.

Example:
    >>> from artifex_devices.xla_client import Layout
    >>> Layout((1, 0), [(2, 2)]).physical_shape((3, 5))
    (2, 3, 2, 2)
)")
      .def(
          "byte_size",
          [](const Layout& self, py::handle shape, py::handle dtype) {
            return self.byte_size(dims_from_python(shape, "Layout.byte_size", "shape"),
                                  dtype_from_python(dtype, "Layout.byte_size"), "Layout.byte_size");
          },
          py::arg("shape"), py::arg("dtype"),
          "Returns the number of bytes of an array in memory, padding included. Raises as pack and unpack do.")
      .def("pack", &pack, py::arg("x"),
           R"(Returns the memory of an array in this layout.

Padding is zero. Elements smaller than a byte (element_size_in_bits 4 for int4, 2 for int2, 1 for bool) share bytes, the
first in the low-order bits, as in XLA.

Args:
    x: An ndarray of any strides with this layout's rank.

Returns:
    A new ndarray of uint8, of byte_size(x.shape, x.dtype) bytes.

Raises:
    ValueError: The rank is different, or the element bits do not fit the dtype.

Example:
    >>> import numpy as np
    >>> from artifex_devices.xla_client import Layout
    >>> Layout((1, 0), [(2, 2)]).pack(np.array([[1, 2, 3], [4, 5, 6]], np.uint8))
    array([1, 2, 4, 5, 3, 0, 6, 0], dtype=uint8)
)")
      .def("unpack", &unpack, py::arg("memory"), py::arg("shape"), py::arg("dtype"),
           R"(Returns the array whose memory in this layout is `memory`; the exact inverse of pack.

Args:
    memory: Contiguous bytes: bytes, a memoryview, or an ndarray of uint8.
    shape: Shape of the array.
    dtype: Dtype of the array.

Returns:
    A new row-major ndarray.

Raises:
    ValueError: The number of bytes is not byte_size(shape, dtype); and as pack.

Example:
    >>> from artifex_devices.xla_client import Layout
    >>> Layout((0, 1)).unpack(bytes([1, 2, 3, 4]), (2, 2), "uint8").tolist()
    [[1, 3], [2, 4]]
)");
}

}  // namespace

void bind_memory_layout(py::module_& module) {
  py::class_<Layout> layout(module, "Layout", py::is_final(),
                            R"(The order of an array's elements in memory, in XLA's terms.

Args:
    minor_to_major: Dimension numbers, the fastest varying first: (1, 0) is row-major for two dimensions.
    tiling: Tiles, each a tuple of sizes for the most minor dimensions; each further tile divides the result of the previous
        ones. Layout.COMBINE, "*" in text, merges a dimension into the next more minor one.
    element_size_in_bits: Bits of an element in memory, or 0 for the size of the dtype.

Raises:
    TypeError: An argument is not a sequence of ints.
    ValueError: minor_to_major is not a permutation of 0 to n - 1, or a number is out of range.

Example:
    >>> from artifex_devices.xla_client import Layout
    >>> layout = Layout((1, 0), [(8, 128)])
    >>> layout.to_string(), layout.physical_shape((10, 200)), layout.byte_size((10, 200), "float32")
    ('{1,0:T(8,128)}', (2, 2, 8, 128), 16384)
)");
  layout
      .def(py::init([](py::handle minor_to_major, py::handle tiling, py::handle element_size_in_bits) {
             return std::make_unique<Layout>(make_layout(minor_to_major, tiling, element_size_in_bits));
           }),
           py::arg("minor_to_major"), py::arg("tiling") = py::tuple(), py::arg("element_size_in_bits") = 0)
      .def(
          "minor_to_major", [](const Layout& self) { return tuple_from_dims(self.minor_to_major()); },
          "Returns the dimension numbers, the fastest varying first.")
      .def("tiling", &tiling_of, "Returns the tiles, outermost first; COMBINE stands for '*'.")
      .def("element_size_in_bits", &Layout::element_bits,
           "Returns the bits of an element in memory, or 0 for the size of the dtype.")
      .def("tail_padding_alignment_in_elements", &Layout::tail_alignment,
           "Returns n of L(n) in text, else 1: the number of elements is padded to a multiple of it.")
      .def("memory_space", &Layout::memory_space, "Returns n of S(n) in text, else 0. It has no effect here.");
  layout.attr("COMBINE") = Layout::kCombine;
  bind_layout_text(layout);
  bind_layout_memory(layout);
  module.def("_layout_from_text", [](const std::string& text) { return Layout::parse(text); }, py::arg("text"));

  py::class_<PjRtLayout>(module, "PjRtLayout", py::is_final(),
                         R"(A Layout as a client returns it.

Args:
    layout: The Layout.

Example:
    >>> from artifex_devices.xla_client import Layout, PjRtLayout
    >>> str(PjRtLayout(Layout((0, 1)))), PjRtLayout(Layout((0, 1)))._xla_layout().minor_to_major()
    ('{0,1}', (0, 1))
)")
      .def(py::init([](const Layout& from) { return std::make_unique<PjRtLayout>(PjRtLayout{from}); }),
           py::arg("layout"))
      .def(
          "_xla_layout", [](const PjRtLayout& self) { return self.layout; }, "Returns the Layout.")
      .def("__str__", [](const PjRtLayout& self) { return self.layout.to_string(); })
      .def("__repr__",
           [](const PjRtLayout& self) { return "PjRtLayout(Layout.parse('" + self.layout.to_string() + "'))"; })
      .def("__eq__",
           [](const PjRtLayout& self, py::handle other) {
             return py::isinstance<PjRtLayout>(other) && self == other.cast<const PjRtLayout&>();
           })
      .def("__hash__", [](const PjRtLayout& self) { return self.layout.hash() >> 2; })
      .def("__reduce__", [](const py::object& self) -> py::tuple {
        return py::make_tuple(py::type::of(self), py::make_tuple(self.attr("_xla_layout")()));
      });

  auto array = module.attr("Array").cast<py::class_<Array, std::shared_ptr<Array>>>();
  array
      .def_property_readonly(
          "_pjrt_layout",
          [](const Array& self) { return PjRtLayout{self.layout() ? *self.layout() : Layout::row_major(self.rank())}; },
          "PjRtLayout in which the elements of each shard are stored.")
      .def_property_readonly(
          "format",
          [](const py::object& self) {
            const py::module_ layouts = py::module_::import(python_modules::kLayout);
            const py::object order = layouts.attr("Layout").attr("from_pjrt_layout")(self.attr("_pjrt_layout"));
            return py::object(layouts.attr("Format")(order, self.attr("sharding")));
          },
          "layout.Format of the order in which the elements of each shard are stored, and the sharding.");
}

}  // namespace artifex_devices::bindings
