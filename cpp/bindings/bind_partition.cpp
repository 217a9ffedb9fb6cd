// SPDX-License-Identifier: Apache-2.0
#include <pybind11/gil_safe_call_once.h>
#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <optional>

#include "artifex_devices/base/throw_error.h"
#include "bindings.h"
#include "class_members.h"
#include "fast_path.h"
#include "mesh_arguments.h"
#include "mesh_fast_paths.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_text.h"
#include "value_slots.h"

namespace artifex_devices::bindings {
namespace {

/// The one value of PartitionSpec.UNCONSTRAINED.
struct Unconstrained {};
PyObject* unconstrained = nullptr;

SpecEntry entry_from_python(py::handle object) {
  if (object.is_none()) return SpecEntry();
  if (object.ptr() == unconstrained) return SpecEntry::unconstrained();
  if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) {
    std::vector<AxisName> axes;
    for (const py::handle item : object) {
      if (PyTuple_Check(item.ptr()) || PyList_Check(item.ptr())) {
        throw_error(
            "PartitionSpec: an entry holds a nested tuple; expected axis names, got {} in {}; put all names of a "
            "dimension in one tuple",
            safe_repr(item), safe_repr(object));
      }
      axes.push_back(axis_name_from_python(item, "PartitionSpec"));
    }
    return SpecEntry(std::move(axes));
  }
  return SpecEntry(axis_name_from_python(object, "PartitionSpec"));
}

py::object entry_to_python(const SpecEntry& entry) {
  switch (entry.kind) {
    case SpecEntry::Kind::kNone:
      return py::none();
    case SpecEntry::Kind::kUnconstrained:
      return py::reinterpret_borrow<py::object>(unconstrained);
    case SpecEntry::Kind::kAxes:
      break;
  }
  if (entry.axes.size() == 1) {
    py::object name = axis_name_to_python(entry.axes[0]);
    // A name that is itself a tuple would read as several names.
    if (!PyTuple_Check(name.ptr())) return name;
  }
  return axis_names_to_python(entry.axes);
}

PartitionSpec spec_from_entries(const py::handle& entries) {
  std::vector<SpecEntry> spec_entries;
  for (const py::handle item : entries) spec_entries.push_back(entry_from_python(item));
  return PartitionSpec(std::move(spec_entries));
}

py::tuple spec_to_tuple(const PartitionSpec& spec) {
  py::tuple result(spec.entries().size());
  for (size_t i = 0; i < spec.entries().size(); ++i) result[i] = entry_to_python(spec.entries()[i]);
  return result;
}

PartitionSpec concatenate(py::handle first, py::handle second) {
  auto entries = [](py::handle part) {
    return PyTuple_Check(part.ptr()) ? spec_from_entries(part).entries() : part.cast<const PartitionSpec&>().entries();
  };
  std::vector<SpecEntry> all = entries(first);
  for (SpecEntry& entry : entries(second)) all.push_back(std::move(entry));
  return PartitionSpec(std::move(all));
}

bool is_spec_or_tuple(py::handle object) {
  return PyTuple_Check(object.ptr()) || py::isinstance<PartitionSpec>(object);
}

// The members of AxisType by value; never released. pybind11's casts of enums run Python code.
constinit std::array<PyObject*, 3> g_axis_types{};

/// The type of a member of AxisType, or of its name in any case; std::nullopt for other objects.
std::optional<AxisType> axis_type_of(py::handle object, std::string_view operation) {
  const auto found = std::ranges::find(g_axis_types, object.ptr());
  if (found != g_axis_types.end()) return static_cast<AxisType>(found - g_axis_types.begin());
  if (!PyUnicode_CheckExact(object.ptr())) return std::nullopt;
  const auto name = py::reinterpret_borrow<py::object>(object).attr("lower")();
  if (name.equal(py::str("auto"))) return AxisType::kAuto;
  if (name.equal(py::str("explicit"))) return AxisType::kExplicit;
  if (name.equal(py::str("manual"))) return AxisType::kManual;
  throw_error<TypeMismatch>("{}: {} is not an axis type; write \"auto\", \"explicit\" or \"manual\"", operation,
                            safe_repr(object));
}

void bind_axis_type(py::module_& module) {
  py::native_enum<AxisType>(module, "AxisType", "enum.Enum",
                            "Type of a mesh axis for code on sharded arrays: Auto, Explicit or Manual, as in JAX.")
      .value("Auto", AxisType::kAuto)
      .value("Explicit", AxisType::kExplicit)
      .value("Manual", AxisType::kManual)
      .finalize();
  const py::object type = module.attr("AxisType");
  for (const AxisType each : {AxisType::kAuto, AxisType::kExplicit, AxisType::kManual}) {
    g_axis_types[static_cast<size_t>(each)] = py::cast(each).release().ptr();
  }
  type.attr("__repr__") = py::cpp_function([](py::handle self) -> py::str { return self.attr("name"); },
                                           py::is_method(type), py::name("__repr__"));
  // As pickled_enum.py does: Python 3.11.0 to 3.11.3 pickle members of enums through getattr.
  type.attr("__reduce_ex__") = py::cpp_function(
      [](py::handle self, py::handle) -> py::tuple {
        return py::make_tuple(py::type::handle_of(self), py::make_tuple(self.attr("value")));
      },
      py::is_method(type), py::name("__reduce_ex__"), py::arg("protocol"));
}

size_t spec_hash(const PartitionSpec& spec) { return spec.hash(); }
bool same_spec(const PartitionSpec& a, const PartitionSpec& b) { return a == b; }

void bind_partition_spec(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<Unconstrained>(internal, "Unconstrained", "The type of PartitionSpec.UNCONSTRAINED.")
      .def("__repr__", [](const Unconstrained&) { return "UNCONSTRAINED"; })
      .def("__reduce__", [](const Unconstrained&) { return "unconstrained"; });  // a name of artifex_devices.unpickle
  unconstrained = py::cast(Unconstrained{}).release().ptr();
  internal.attr("UNCONSTRAINED") = py::reinterpret_borrow<py::object>(unconstrained);

  py::class_<PartitionSpec> spec(
      module, "PartitionSpec", py::is_final(), py::metaclass(fast_path_metaclass()),
      ValueSlots<PartitionSpec, &spec_hash, &same_spec>::setup(),
      R"(The mesh axes that each dimension of an array is sharded over, with one entry for each dimension.

An entry is None (not sharded), an axis name, a tuple of names (the first is the major one) or UNCONSTRAINED. Dimensions
beyond the entries are not sharded. As in JAX it is not a tuple, and P('x') and P('x', None) are unequal.

Raises:
    TypeError: A name is not hashable.
    ValueError: A tuple contains None.

Example:
    >>> from artifex_devices.sharding import PartitionSpec as P
    >>> P("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    >>> P("data") + P("model")
    P('data', 'model')
)");
  spec.def(
          py::init([](const py::args& entries) { return std::make_unique<PartitionSpec>(spec_from_entries(entries)); }))
      .def_property_readonly("partitions", &spec_to_tuple, "Entries (tuple).")
      .def(
          "index", [](const PartitionSpec& self, py::handle value) { return spec_to_tuple(self).attr("index")(value); },
          py::arg("value"), "Returns the first position of an entry. Raises ValueError if the entry is not in it.")
      .def(
          "count", [](const PartitionSpec& self, py::handle value) { return spec_to_tuple(self).attr("count")(value); },
          py::arg("value"), "Returns the number of entries equal to `value`.")
      .def("__len__", by_reference(&PartitionSpec::rank))
      .def("__iter__", [](const PartitionSpec& self) { return py::iter(spec_to_tuple(self)); })
      .def(
          "__getitem__",
          [](const PartitionSpec& self, py::handle index) {
            return py::object(spec_to_tuple(self).attr("__getitem__")(index));
          },
          py::arg("index"))
      .def("__contains__",
           [](const PartitionSpec& self, py::handle value) { return spec_to_tuple(self).contains(value); })
      .def("__add__",
           [](const py::object& self, py::handle other) -> py::object {
             if (!is_spec_or_tuple(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
             return py::cast(concatenate(self, other));
           })
      .def("__radd__",
           [](const py::object& self, py::handle other) -> py::object {
             if (!is_spec_or_tuple(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
             return py::cast(concatenate(other, self));
           })
      .def("__reduce__",
           [](const py::object& self) -> py::tuple {
             return py::make_tuple(py::type::of(self), self.attr("partitions"));
           })
      .def("__repr__", by_reference(&PartitionSpec::to_string));
  add_spec_fast_paths(spec, unconstrained);
  spec.attr("UNCONSTRAINED") = py::reinterpret_borrow<py::object>(unconstrained);
}

bool are_pairs(py::handle sizes) {
  if (!PyTuple_CheckExact(sizes.ptr()) || PyTuple_GET_SIZE(sizes.ptr()) == 0) return false;
  for (const py::handle each : sizes) {
    if (!PyTuple_CheckExact(each.ptr()) || PyTuple_GET_SIZE(each.ptr()) != 2) return false;
  }
  return true;
}

/// Raises TypeError for AbstractMesh((2, 4)), and for {"x": 2} and (("x", 2),), which also have the names.
[[noreturn]] void refuse_without_names(py::handle sizes) {
  py::list numbers;
  py::list names;
  if (PyDict_CheckExact(sizes.ptr())) {
    for (const auto& [name, size] : py::reinterpret_borrow<py::dict>(sizes)) {
      names.append(name);
      numbers.append(size);
    }
  } else if (are_pairs(sizes)) {
    for (const py::handle pair : sizes) {
      names.append(py::handle(PyTuple_GET_ITEM(pair.ptr(), 0)));
      numbers.append(py::handle(PyTuple_GET_ITEM(pair.ptr(), 1)));
    }
  } else {
    numbers = py::list(tuple_from_dims(dims_from_python(sizes, "AbstractMesh", "axis_sizes")));
    for (size_t i = 0; i < numbers.size(); ++i) names.append(fmt::format("axis{}", i));
  }
  throw_error<TypeMismatch>("AbstractMesh: axis_names is missing; write ad.AbstractMesh({}, {})",
                            safe_repr(py::tuple(numbers)), safe_repr(py::tuple(names)));
}

void bind_abstract_mesh(py::module_& module) {
  py::class_<AbstractMesh> bound(module, "AbstractMesh", py::metaclass(fast_path_metaclass()),
                                 R"(Names and sizes of mesh axes, without devices.

Args:
    axis_sizes: Sizes of the axes, each at least 1.
    axis_names: Distinct hashable names, one for each axis.
    axis_types: AxisType of all axes, or one for each axis; Auto by default.

Raises:
    ValueError: The lengths differ, a name is repeated, a size is below 1, or the product does not fit 64 bits.

Example:
    >>> from artifex_devices.sharding import AbstractMesh
    >>> AbstractMesh((2, 4), ("x", "y")).size
    8
)");
  bound
      .def(py::init([](py::handle sizes, py::handle names, py::handle types) {
             if (names.is(py::ellipsis())) refuse_without_names(sizes);
             const Dims dims = dims_from_python(sizes, "AbstractMesh", "axis_sizes");
             return std::make_unique<AbstractMesh>(axis_names_from_python(names, "AbstractMesh"), dims,
                                                   axis_types_from_python(types, "AbstractMesh", dims.size()));
           }),
           py::arg("axis_sizes"), py::arg_v("axis_names", py::ellipsis(), "..."), py::arg("axis_types") = py::none())
      .def_property_readonly(
          "axis_names", [](const AbstractMesh& self) { return axis_names_to_python(self.axis_names()); },
          "Names, major to minor (tuple).")
      .def_property_readonly(
          "axis_sizes", [](const AbstractMesh& self) { return tuple_from_dims(self.axis_sizes()); },
          "Sizes, major to minor (tuple of int).")
      .def_property_readonly(
          "axis_types", [](const AbstractMesh& self) { return axis_types_to_python(self.axis_types()); },
          "AxisType of each axis (tuple).")
      .def_property_readonly("shape", &axis_sizes_by_name, "OrderedDict of name to size.")
      .def_property_readonly(
          "shape_tuple", [](const AbstractMesh& self) { return py::tuple(axis_sizes_by_name(self).attr("items")()); },
          "((name, size), ...).")
      .def_property_readonly(
          "size", [](const AbstractMesh& self) { return self.empty() ? 0 : self.size(); },
          "Product of the sizes; 0 without axes, as in JAX.")
      .def_property_readonly("empty", by_reference(&AbstractMesh::empty), "Whether there are no axes.")
      .def("__eq__", &equals<AbstractMesh>)
      .def("__hash__", [](const AbstractMesh& self) { return self.hash() >> 2; })
      .def("__reduce__",
           [](const py::object& self) -> py::tuple {
             return py::make_tuple(py::type::of(self), py::make_tuple(self.attr("axis_sizes"), self.attr("axis_names"),
                                                                      self.attr("axis_types")));
           })
      .def("__repr__", by_reference(&AbstractMesh::to_string));
  add_explained_class(bound);
}

}  // namespace

std::vector<AxisType> axis_types_from_python(py::handle object, std::string_view operation, int64_t axes) {
  if (object.is_none()) return {};
  if (const auto type = axis_type_of(object, operation)) return std::vector<AxisType>(static_cast<size_t>(axes), *type);
  std::vector<AxisType> types;
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) {
    throw_error<TypeMismatch>(
        "{}: axis_types is of type {}; expected a tuple of AxisType, got {}; write (AxisType.Auto,) * {}", operation,
        Py_TYPE(object.ptr())->tp_name, safe_repr(object), axes);
  }
  for (const py::handle item : object) {
    const auto type = axis_type_of(item, operation);
    if (!type) {
      throw_error<TypeMismatch>(
          "{}: axis_types holds a {}; expected AxisType.Auto, Explicit or Manual, got {}; write (AxisType.Auto,) * {}",
          operation, Py_TYPE(item.ptr())->tp_name, safe_repr(item), axes);
    }
    types.push_back(*type);
  }
  if (static_cast<int64_t>(types.size()) != axes) {
    throw_error(
        "{}: axis_types has the wrong length; expected one for each of {} axes, got {}; pass a single AxisType for all "
        "axes",
        operation, axes, types.size());
  }
  return types;
}

py::tuple axis_types_to_python(const std::vector<AxisType>& types) {
  py::tuple result(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(g_axis_types[static_cast<size_t>(types[i])]));
  }
  return result;
}

// The code of the spec that was meant by a value of another type.
std::string spec_text(py::handle object) {
  if (object.is_none()) return "ad.P()";
  if (PyUnicode_Check(object.ptr())) return "ad.P(" + safe_repr(object) + ")";
  if (PyList_CheckExact(object.ptr()) || PyTuple_CheckExact(object.ptr())) {
    return "ad.P" + safe_repr(py::reinterpret_steal<py::object>(PySequence_Tuple(object.ptr())));
  }
  return "ad.P('data', None)";
}

const PartitionSpec& spec_from_python(py::handle object, std::string_view operation) {
  if (!py::isinstance<PartitionSpec>(object)) {
    throw_error<TypeMismatch>("{}: spec is of type {}; expected a PartitionSpec, got {}; write {}", operation,
                              Py_TYPE(object.ptr())->tp_name, safe_repr(object), spec_text(object));
  }
  return object.cast<const PartitionSpec&>();
}

py::object axis_sizes_by_name(const AbstractMesh& mesh) {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> ordered_dict;  // never freed
  py::object result =
      ordered_dict
          .call_once_and_store_result([] { return py::object(py::module_::import("collections").attr("OrderedDict")); })
          .get_stored()();
  for (int64_t i = 0; i < mesh.rank(); ++i) {
    result[axis_name_to_python(mesh.axis_names()[static_cast<size_t>(i)])] = py::int_(mesh.axis_sizes()[i]);
  }
  return result;
}

void bind_partition(py::module_& module) {
  create_axis_name_table();
  bind_axis_type(module);
  bind_partition_spec(module);
  bind_abstract_mesh(module);
}

}  // namespace artifex_devices::bindings
