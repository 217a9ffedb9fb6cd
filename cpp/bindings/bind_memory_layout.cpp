// SPDX-License-Identifier: Apache-2.0
// XLA's Layout and PjRtLayout: the order of elements in memory.

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/throw_error.h"
#include "bindings.h"
#include "class_members.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

/// A layout as a runtime returns it.
struct PjRtLayout {
  Layout layout;
  friend bool operator==(const PjRtLayout&, const PjRtLayout&) = default;
};

Layout make_layout(py::handle minor_to_major) {
  const bool is_text = PyUnicode_Check(minor_to_major.ptr()) || PyBytes_Check(minor_to_major.ptr());
  if (is_text || !PySequence_Check(minor_to_major.ptr())) {
    throw_error<TypeMismatch>(
        "Layout: minor_to_major is of type {}; expected a sequence of ints, got {}; write Layout((1, 0))",
        Py_TYPE(minor_to_major.ptr())->tp_name, safe_repr(minor_to_major));
  }
  return Layout(dims_from_python(minor_to_major, "Layout", "minor_to_major"));
}

}  // namespace

void bind_memory_layout(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<Layout>(module, "Layout", py::is_final(),
                     R"(The order of an array's dimensions in memory, in XLA's terms.

Args:
    minor_to_major: Dimension numbers, the fastest varying first: (1, 0) is row-major for two dimensions.

Raises:
    TypeError: The argument is not a sequence of ints.
    ValueError: minor_to_major is not a permutation of 0 to n - 1.

Example:
    >>> from artifex_devices.xla_client import Layout
    >>> Layout((0, 1)).minor_to_major(), Layout((0, 1)).to_string()
    ((0, 1), '{0,1}')
)")
      .def(py::init([](py::handle minor_to_major) { return std::make_unique<Layout>(make_layout(minor_to_major)); }),
           py::arg("minor_to_major"))
      .def(
          "minor_to_major", [](const Layout& self) { return tuple_from_dims(self.minor_to_major()); },
          "Returns the dimension numbers, the fastest varying first.")
      .def(
          "tiling", [](const Layout&) { return py::list(); }, "Returns the tiles: none, as Arrays have none.")
      .def(
          "element_size_in_bits", [](const Layout&) { return 0; }, "Returns 0: elements are not packed.")
      .def("to_string", by_reference(&Layout::to_string), "Returns XLA's text of the layout, such as '{1,0}'.")
      .def("__str__", by_reference(&Layout::to_string))
      .def("__repr__", [](const Layout& self) { return "Layout.parse('" + self.to_string() + "')"; })
      .def_static(
          "parse",
          [](const TextArgument& text) { return Layout::parse(text_from_python(text, "Layout.parse", "text")); },
          py::arg("text"),
          R"(Returns the Layout of XLA's text, such as '{1,0}'.

Raises:
    ValueError: The text has another form. XLA's tiles, element bits, tails and memory spaces are refused, because Arrays
        do not have them.

Example:
    >>> from artifex_devices.xla_client import Layout
    >>> Layout.parse("{1,0}").minor_to_major()
    (1, 0)
)")
      .def("__eq__", &equals<Layout>)
      .def("__hash__", [](const Layout& self) { return self.hash() >> 2; })
      .def("__reduce__", [](const Layout& self) -> py::tuple { return pickled_by("layout", self.to_string()); });
  internal.def("layout_from_text", [](const std::string& text) { return Layout::parse(text); }, py::arg("text"));

  py::class_<PjRtLayout>(module, "PjRtLayout", py::is_final(),
                         R"(A Layout as a client returns it.

Args:
    layout: The Layout.

Example:
    >>> from artifex_devices.xla_client import Layout, PjRtLayout
    >>> str(PjRtLayout(Layout((0, 1)))), PjRtLayout(Layout((0, 1)))._xla_layout().minor_to_major()
    ('{0,1}', (0, 1))
)")
      .def(py::init([](const py::typing::Union<Layout>& from) {
             return std::make_unique<PjRtLayout>(
                 PjRtLayout{value_from_python<Layout>(from, "PjRtLayout", "layout", "a Layout", "Layout((0, 1))")});
           }),
           py::arg("layout"))
      .def(
          "_xla_layout", [](const PjRtLayout& self) { return self.layout; }, "Returns the Layout.")
      .def("__str__", [](const PjRtLayout& self) { return self.layout.to_string(); })
      .def("__repr__",
           [](const PjRtLayout& self) { return "PjRtLayout(Layout.parse('" + self.layout.to_string() + "'))"; })
      .def("__eq__", &equals<PjRtLayout>)
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
