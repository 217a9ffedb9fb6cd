// SPDX-License-Identifier: Apache-2.0
// Members of meshes, shardings and specs: their axes by type, and copies with some arguments replaced. A copy calls the
// class, whose constructor checks the arguments.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "bindings.h"
#include "mesh_arguments.h"
#include "python_arguments.h"
#include "safe_repr.h"

namespace artifex_devices::bindings {
namespace {

/// A PartitionSpec as its Python object, so that a function can return its argument.
struct SpecObject : py::object {
  explicit SpecObject(py::object spec) : py::object(std::move(spec)) {}
};

}  // namespace
}  // namespace artifex_devices::bindings

template <>
struct pybind11::detail::handle_type_name<artifex_devices::bindings::SpecObject> {
  static constexpr auto name = const_name("artifex_devices._core.PartitionSpec");
};

namespace artifex_devices::bindings {
namespace {

using MeshClass = py::class_<Mesh, std::shared_ptr<Mesh>>;
using AbstractMeshClass = py::class_<AbstractMesh>;
using ShardingClass = py::class_<Sharding, std::shared_ptr<Sharding>>;
using NamedShardingClass = py::class_<NamedSharding, Sharding, std::shared_ptr<NamedSharding>>;
using SpecClass = py::class_<PartitionSpec>;

/// The entries of a spec that an iterable gives.
py::tuple entries_of(py::handle object, std::string_view what) {
  py::list entries;
  for_each_dimension(object, "update", what, [&](py::handle item) { entries.append(item); });
  return py::tuple(entries);
}

const AbstractMesh& axes_of(const Mesh& mesh) { return mesh.abstract_mesh(); }
const AbstractMesh& axes_of(const AbstractMesh& mesh) { return mesh; }

template <class T, class Class>
void bind_axes_of_type(Class bound, AxisType kind, const std::string& word) {
  const std::string name(to_string(kind));
  bound.def_property_readonly((word + "_axes").c_str(),
                              [kind](const T& self) {
                                const AbstractMesh& axes = axes_of(self);
                                std::vector<AxisName> names;
                                for (size_t i = 0; i < axes.axis_types().size(); ++i) {
                                  if (axes.axis_types()[i] == kind) names.push_back(axes.axis_names()[i]);
                                }
                                return axis_names_to_python(names);
                              },
                              ("Names of the axes of type " + name + " (tuple).").c_str());
  bound.def_property_readonly(("are_all_axes_" + word).c_str(),
                              [kind](const T& self) {
                                const std::vector<AxisType>& types = axes_of(self).axis_types();
                                return !types.empty() && std::all_of(types.begin(), types.end(),
                                                                     [kind](AxisType each) { return each == kind; });
                              },
                              ("Whether every axis is of type " + name + "; False without axes.").c_str());
}

template <class T, class Class>
void bind_axes_by_type(Class bound) {
  bind_axes_of_type<T>(bound, AxisType::kAuto, "auto");
  bind_axes_of_type<T>(bound, AxisType::kExplicit, "explicit");
  bind_axes_of_type<T>(bound, AxisType::kManual, "manual");
}

/// The argument, or for None the attribute of the object that is copied.
py::object given_or_own(const py::object& value, const py::object& self, const char* name) {
  return value.is_none() ? py::object(self.attr(name)) : value;
}

void bind_members_of(MeshClass bound) {
  bind_axes_by_type<Mesh>(bound);
  bound.def(
      "update",
      [](const std::shared_ptr<Mesh>& mesh, const py::object& devices, const py::object& names,
         const py::object& types) {
        const py::object self = py::cast(mesh);
        const py::object updated =
            py::type::of<Mesh>()(given_or_own(devices, self, "devices"), given_or_own(names, self, "axis_names"),
                                 given_or_own(types, self, "axis_types"));
        return updated.cast<std::shared_ptr<Mesh>>();
      },
      py::arg("devices") = py::none(), py::arg("axis_names") = py::none(), py::arg("axis_types") = py::none(),
      R"(Returns a mesh with other devices, names or axis types; TypeError and ValueError as of Mesh.

Example:
    >>> import artifex_devices as ad
    >>> with ad.simulate(8):
    ...     mesh = ad.make_mesh((8,), ("x",))
    ...     mesh.update(axis_names=("data",)).axis_names
    ('data',)
)");
}

AbstractMesh with_types_by_name(const AbstractMesh& self, const py::object& name_to_type) {
  if (!py::isinstance(name_to_type, py::module_::import("collections.abc").attr("Mapping"))) {
    throw_error<TypeMismatch>(
        "update_axis_types: name_to_type is {} ({}); expected a dict of axis name to AxisType; write {{'x': "
        "AxisType.Explicit}}",
        safe_repr(name_to_type), Py_TYPE(name_to_type.ptr())->tp_name);
  }
  py::list types;
  for (size_t i = 0; i < self.axis_types().size(); ++i) {
    types.append(name_to_type.attr("get")(axis_name_to_python(self.axis_names()[i]), self.axis_types()[i]));
  }
  return {self.axis_names(), self.axis_sizes(), axis_types_from_python(types, "AbstractMesh", self.rank())};
}

void bind_members_of(AbstractMeshClass bound) {
  bind_axes_by_type<AbstractMesh>(bound);
  bound
      .def_property_readonly(
          "abstract_mesh", [](AbstractMesh& self) -> AbstractMesh& { return self; },
          "The mesh itself: it has no devices.")
      .def(
          "update",
          [](const AbstractMesh& mesh, const py::object& sizes, const py::object& names, const py::object& types) {
            const py::object self = py::cast(mesh, py::return_value_policy::reference);
            const py::object updated = py::type::of<AbstractMesh>()(given_or_own(sizes, self, "axis_sizes"),
                                                                    given_or_own(names, self, "axis_names"),
                                                                    given_or_own(types, self, "axis_types"));
            return updated.cast<AbstractMesh>();
          },
          py::arg("axis_sizes") = py::none(), py::arg("axis_names") = py::none(), py::arg("axis_types") = py::none(),
          R"(Returns a mesh with other sizes, names or axis types; TypeError and ValueError as of AbstractMesh.

Example:
    >>> from artifex_devices.sharding import AbstractMesh
    >>> AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(4, 4)).size
    16
)")
      .def("update_axis_types", &with_types_by_name, py::arg("name_to_type"),
           R"(Returns a mesh with other types of the axes in `name_to_type`, a dict of axis name to AxisType.

Raises:
    TypeError: name_to_type is not a mapping, or a value is not an AxisType.

Example:
    >>> from artifex_devices.sharding import AbstractMesh, AxisType
    >>> AbstractMesh((2, 4), ("x", "y")).update_axis_types({"y": AxisType.Explicit}).explicit_axes
    ('y',)
)");
}

void bind_members_of(ShardingClass bound) {
  bound.def(
      "check_compatible_aval",
      [](const Sharding& self, const py::object& aval_shape) {
        const auto* named = dynamic_cast<const NamedSharding*>(&self);
        const size_t rank = named == nullptr ? 0 : static_cast<size_t>(named->spec().rank());
        const size_t dimensions = py::len(aval_shape);
        if (dimensions >= rank) return;
        throw_error("check_compatible_aval: the value has too few dimensions for {}; expected {} at least, got {}; {}",
                    self.to_string(), rank, dimensions,
                    dimensions == 0 ? "write P() for a number" : "leave entries of the spec out");
      },
      py::arg("aval_shape"),
      R"(Raises ValueError unless a value of this shape has a dimension for each entry of the spec.

Example:
    >>> import artifex_devices as ad
    >>> with ad.simulate(2):
    ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")).check_compatible_aval((4, 3))
)");
}

std::shared_ptr<NamedSharding> updated_sharding(const std::shared_ptr<NamedSharding>& sharding,
                                                const py::kwargs& changes) {
  const py::object self = py::cast(sharding);
  py::dict arguments;
  for (const char* name : {"mesh", "spec", "memory_kind", "uneven"}) {
    arguments[name] = changes.contains(name) ? py::object(changes[name]) : py::object(self.attr(name));
  }
  py::list unknown;
  for (const auto& change : changes) {
    if (!arguments.contains(change.first)) unknown.append(change.first);
  }
  if (!unknown.empty()) {
    unknown.attr("sort")();
    throw_error<TypeMismatch>(
        "update: unknown arguments {}; expected mesh, spec, memory_kind or uneven; check the spelling",
        py::str(", ").attr("join")(unknown).cast<std::string>());
  }
  if (!py::isinstance<PartitionSpec>(arguments["spec"])) {
    arguments["spec"] = py::type::of<PartitionSpec>()(*entries_of(py::object(arguments["spec"]), "spec"));
  }
  return py::type::of<NamedSharding>()(**arguments).cast<std::shared_ptr<NamedSharding>>();
}

void bind_members_of(NamedShardingClass bound) {
  bound.def("update", &updated_sharding, R"(Returns a NamedSharding with another mesh, spec, memory_kind or uneven.

Args:
    **kwargs: `mesh`, `spec` (a PartitionSpec or its entries), `memory_kind`, `uneven`.

Raises:
    TypeError: An argument has another name.
    ValueError: As NamedSharding.

Example:
    >>> import artifex_devices as ad
    >>> with ad.simulate(2):
    ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P()).update(spec=ad.P("x")).spec
    P('x',)
)");
}

void bind_members_of(SpecClass bound) {
  bound.def(
      "update",
      [](const py::object& self, const py::object& partitions) {
        static_cast<void>(self.cast<const PartitionSpec&>());  // raises where __init__ has not run
        if (partitions.is_none()) return SpecObject(self);
        if (py::isinstance<py::str>(partitions) || py::isinstance<py::bytes>(partitions) ||
            !py::hasattr(py::type::of(partitions), "__iter__")) {
          throw_error<TypeMismatch>(
              "update: partitions is {} ({}); expected a tuple of entries; write partitions=('x', None)",
              safe_repr(partitions), Py_TYPE(partitions.ptr())->tp_name);
        }
        return SpecObject(py::type::of<PartitionSpec>()(*entries_of(partitions, "partitions")));
      },
      py::arg("partitions") = py::none(),
      R"(Returns a PartitionSpec with other entries, or itself for None; TypeError unless they can be iterated over.

Example:
    >>> import artifex_devices as ad
    >>> ad.P("x").update(partitions=("y", None))
    P('y', None)
)");
}

}  // namespace

void bind_mesh_members(py::module_& module) {
  bind_members_of(MeshClass(module.attr("Mesh")));
  bind_members_of(AbstractMeshClass(module.attr("AbstractMesh")));
  bind_members_of(ShardingClass(module.attr("Sharding")));
  bind_members_of(NamedShardingClass(module.attr("NamedSharding")));
  bind_members_of(SpecClass(module.attr("PartitionSpec")));
}

}  // namespace artifex_devices::bindings
