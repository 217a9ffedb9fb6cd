// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/process_rows.h"
#include "artifex_devices/sharding/reshard_totals.h"
#include "artifex_devices/sharding/single_device_sharding.h"
#include "bindings.h"
#include "class_members.h"
#include "cpython_calls.h"
#include "device_indices.h"
#include "fast_path.h"
#include "mesh_arguments.h"
#include "mesh_fast_paths.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "python_text.h"
#include "value_slots.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

using OptionalText = py::typing::Optional<py::str>;

MemoryKind memory_kind_from_python(const OptionalText& kind, std::string_view operation) {
  if (kind.is_none()) return MemoryKind::kDevice;
  return memory_kind_from_name(text_from_python(kind, operation, "memory_kind"), operation);
}

Uneven uneven_from_python(const OptionalText& uneven) {
  if (uneven.is_none()) return Uneven::kError;
  const std::string text = text_from_python(uneven, "NamedSharding", "uneven");
  if (text != "last-short") {
    throw_error(
        "NamedSharding: uneven is unknown; expected None or \"last-short\", got {:?}; leave it out to raise for uneven "
        "shapes",
        text);
  }
  return Uneven::kLastShort;
}

// --- Sharding
// -----------------------------------------------------------------------------------------------------------

size_t sharding_hash(const Sharding& sharding) { return sharding.hash(); }
bool same_sharding(const Sharding& a, const Sharding& b) { return a == b; }

py::set devices_of_sharding(const Sharding& self) {
  check_has_devices(self, "device_set");
  return device_set(self.devices());
}

py::set addressable_devices(const Sharding& self) {
  check_has_devices(self, "addressable_devices");
  const DeviceList& devices = *self.devices();
  py::set result;
  for (int64_t i = 0; i < devices.addressable_count(); ++i) {
    result.add(handle_of(devices[devices.addressable_position(i)]));
  }
  return result;
}

void bind_sharding_base(py::module_& module) {
  py::class_<Sharding, std::shared_ptr<Sharding>> sharding(
      module, "Sharding", ValueSlots<Sharding, &sharding_hash, &same_sharding>::setup(),
      R"(Placement of arrays of any shape on devices. Immutable and hashable; the base of NamedSharding and SingleDeviceSharding.
)");
  sharding
      .def(
          "shard_shape",
          [](const Sharding& self, py::handle global_shape) {
            return tuple_from_dims(self.shard_shape(dims_from_python(global_shape, "shard_shape", "global_shape")));
          },
          py::arg("global_shape"), R"(Returns the shape of each device's shard of an array of `global_shape`.

With uneven="last-short", returns the shape of the first shard, which is the largest.

Raises:
    IndivisibleError: A dimension is not divisible by its axes (a ValueError).
    ValueError: The spec has more entries than the shape has dimensions.
    TypeError: A size is not an int.
)")
      .def("devices_indices_map", &devices_indices_map, py::arg("global_shape"),
           R"(Returns the part of an array of `global_shape` that each device holds.

Returns:
    dict of Device to tuple of slices, in mesh order; the slice of a dimension that is not sharded is slice(None).

Raises:
    ValueError: As shard_shape.
)")
      .def("addressable_devices_indices_map", &addressable_indices_map, py::arg("global_shape"),
           "Returns devices_indices_map for the devices of this process only.")
      .def("device_index", &device_index, py::arg("device"), py::arg("global_shape"),
           R"(Returns the part of an array of `global_shape` on one device: devices_indices_map(global_shape)[device].

Takes the same time for any number of devices.

Returns:
    tuple of slices.

Raises:
    TypeError: `device` is not a Device.
    ValueError: The sharding does not include the device, or shard_shape() raises ValueError.
)")
      .def_property_readonly("device_set", &devices_of_sharding, "Set of all devices.")
      .def_property_readonly("addressable_devices", &addressable_devices, "Set of the devices of this process.")
      .def_property_readonly(
          "has_addressable_devices",
          [](const Sharding& self) { return !self.is_abstract() && self.devices()->addressable_count() > 0; },
          "Whether it has devices of this process.")
      .def_property_readonly("num_devices", by_reference(&Sharding::num_devices), "Number of devices.")
      .def_property_readonly(
          "_device_assignment",
          [](const Sharding& self) {
            const DeviceObjects object_of(*self.devices());
            py::tuple result(static_cast<size_t>(self.num_devices()));
            for (int64_t i = 0; i < self.num_devices(); ++i) {
              result[static_cast<size_t>(i)] = object_of((*self.devices())[Position(i)]);
            }
            return result;
          },
          "Tuple of all devices in mesh order.")
      .def_property_readonly(
          "_internal_device_list",
          [](const Sharding& self) {
            check_has_devices(self, "_internal_device_list");
            return unconst(self.devices());
          },
          "DeviceList of all devices in mesh order.")
      .def(
          "_same_devices",
          [](const Sharding& self, const Sharding& other) {
            return self.memory_kind() == other.memory_kind() && *self.devices() == *other.devices();
          },
          py::arg("other"), "Returns whether both have the same devices in the same order and the same memory kind.")
      .def_property_readonly("is_fully_replicated", by_reference(&Sharding::is_fully_replicated),
                             "Whether each device holds the global array.")
      .def_property_readonly(
          "is_fully_addressable",
          [](const Sharding& self) {
            check_has_devices(self, "is_fully_addressable");
            return self.is_fully_addressable();
          },
          "Whether all devices belong to this process.")
      .def_property_readonly(
          "memory_kind",
          [](const Sharding& self) -> std::optional<std::string> {
            if (self.is_abstract() && self.memory_kind() == MemoryKind::kDevice) return std::nullopt;
            return std::string(to_string(self.memory_kind()));
          },
          "Memory kind: \"device\", \"pinned_host\" or \"unpinned_host\"; on an AbstractMesh None by default.")
      .def(
          "with_memory_kind",
          [](const Sharding& self, const TextArgument& kind) {
            const std::string name = text_from_python(kind, "Sharding.with_memory_kind", "kind");
            return unconst(self.with_memory_kind(memory_kind_from_name(name, "with_memory_kind")));
          },
          py::arg("kind"), "Returns the same sharding in another memory kind. Raises ValueError for an unknown kind.")
      .def(
          "is_equivalent_to",
          [](const Sharding& self, const py::typing::Union<Sharding>& other, const IntArgument& ndim) {
            constexpr std::string_view kOperation = "Sharding.is_equivalent_to";
            return self.is_equivalent_to(
                value_from_python<Sharding>(other, kOperation, "other", "a Sharding", "x.sharding"),
                index_from_python(ndim, kOperation, "ndim"));
          },
          py::arg("other"), py::arg("ndim"),
          "Returns whether the same devices hold the same parts of every array of rank `ndim`. Axis names do not "
          "matter.")
      .def("_repr_html_",
           [](const py::object& self) { return call_python(python_modules::kHtml, "sharding_html", self); })
      .def("__repr__", by_reference(&Sharding::to_string));
  add_sharding_fast_paths(sharding);
}

void bind_process_rows(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "process_groups",
      [](const Sharding& sharding, int64_t ndim, const std::string& operation) {
        check_has_devices(sharding, operation);
        std::vector<std::optional<std::vector<std::vector<int64_t>>>> result;
        for (const std::optional<RowHolders>& groups : process_groups(sharding, ndim, operation)) {
          auto& found = result.emplace_back();
          if (!groups) continue;
          found.emplace();
          for (const std::vector<ProcessIndex>& group : *groups) found->push_back(numbers(group));
        }
        return result;
      },
      py::arg("sharding"), py::arg("ndim"), py::arg("operation"),
      R"(Returns, for each dimension, the groups of processes that hold the same parts of it.

The entry of a dimension is None if processes hold different numbers of parts of it.
)");
  internal.def(
      "process_parts",
      [](const Sharding& sharding, py::handle shape, const std::string& operation) {
        check_has_devices(sharding, operation);
        std::map<int64_t, std::vector<std::vector<Rows>>> result;
        for (auto& [process, parts] : process_parts(sharding, dims_from_python(shape, operation, "shape"), operation)) {
          result.emplace(process.number(), std::move(parts));
        }
        return result;
      },
      py::arg("sharding"), py::arg("shape"), py::arg("operation"),
      R"(Returns a dict of process to the distinct parts that it holds of each dimension.

The parts of a dimension are a list of (begin, end), ascending.
)");
  internal.def(
      "batch_share",
      [](const Sharding& sharding, int64_t length, int64_t dimension) {
        check_has_devices(sharding, "batch_share");
        return batch_share(sharding, length, dimension);
      },
      py::arg("sharding"), py::arg("length"), py::arg("dimension"),
      "Returns (begin, end) of the rows of a dimension that this process holds.");
}

/// Pickles name the class; it may be a derived class.
template <class T>
void check_kind(const py::type& kind) {
  const py::type expected = py::type::of<T>();
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(kind.ptr()), reinterpret_cast<PyTypeObject*>(expected.ptr()))) {
    return;
  }
  throw_error<TypeMismatch>(
      "unpickle: the class of a sharding is damaged; expected {} or a derived class, got {}; pickle it again",
      expected.attr("__name__").cast<std::string>(), safe_repr(kind));
}

/// Our counterpart of a mesh or spec of JAX; other objects unchanged.
py::object from_jax(const py::object& value) {
  return call_python(python_modules::kJaxValues, "from_jax", py::str("NamedSharding"), value);
}

/// Raises TypeError where mesh or spec is left out (an Ellipsis), or they are swapped.
void check_mesh_and_spec(py::handle mesh, py::handle spec) {
  const bool has_mesh = py::isinstance<Mesh>(mesh) || py::isinstance<AbstractMesh>(mesh);
  if (py::isinstance<PartitionSpec>(mesh)) {
    const bool is_swapped = py::isinstance<Mesh>(spec) || py::isinstance<AbstractMesh>(spec);
    throw_error<TypeMismatch>("NamedSharding: {}; write ad.NamedSharding(mesh, ad.{})",
                              is_swapped ? "the mesh comes first" : "mesh is missing", safe_repr(mesh));
  }
  const bool is_mesh_missing = mesh.is(py::ellipsis());
  if (!spec.is(py::ellipsis()) && !is_mesh_missing) return;
  std::string text = "ad.P('x')";
  if (has_mesh) {
    const py::tuple names = mesh.attr("axis_names");
    text = names.empty() ? "ad.P()" : "ad.P(" + safe_repr(names[0]) + ")";
  } else if (py::isinstance<PartitionSpec>(spec)) {
    text = "ad." + safe_repr(spec);
  }
  const char* missing = !spec.is(py::ellipsis()) ? "mesh is" : is_mesh_missing ? "mesh and spec are" : "spec is";
  throw_error<TypeMismatch>("NamedSharding: {} missing; write ad.NamedSharding(mesh, {})", missing, text);
}

void bind_shardings(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<NamedSharding, Sharding, std::shared_ptr<NamedSharding>> named(module, "NamedSharding",
                                                                            py::metaclass(fast_path_metaclass()),
                                                                            R"(A mesh and a PartitionSpec over its axes.

Args:
    mesh: Mesh, or AbstractMesh, which has shard shapes but no devices to place data on.
    spec: PartitionSpec. Data is replicated over axes that it does not name.
    memory_kind: "device", "pinned_host", "unpinned_host", or None for "device".
    uneven: None to raise for dimensions that their axes do not divide (as JAX), or "last-short" for chunks of
        ceil(size / parts), the last ones shorter or empty.

Raises:
    ValueError: The mesh does not have an axis of the spec or is empty, or the memory kind is unknown.
    DuplicateSpecError: An axis is used twice (a ValueError).

Example:
    >>> import artifex_devices as ad
    >>> from artifex_devices.sharding import NamedSharding, PartitionSpec as P
    >>> with ad.simulate(8):
    ...     mesh = ad.make_mesh((2, 4), ("data", "model"))
    ...     NamedSharding(mesh, P("data", "model")).shard_shape((8, 16))
    (4, 4)
)");
  named
      .def(py::init([](py::typing::Union<Mesh, AbstractMesh> mesh, py::object spec, const OptionalText& memory_kind,
                       const OptionalText& uneven) {
             constexpr std::string_view kOperation = "NamedSharding";
             if (!py::isinstance<Mesh>(mesh) && !py::isinstance<AbstractMesh>(mesh)) mesh = from_jax(mesh);
             if (!py::isinstance<PartitionSpec>(spec)) spec = from_jax(spec);
             check_mesh_and_spec(mesh, spec);
             const PartitionSpec& checked = spec_from_python(spec, kOperation);
             const MemoryKind kind = memory_kind_from_python(memory_kind, kOperation);
             const Uneven rule = uneven_from_python(uneven);
             if (py::isinstance<Mesh>(mesh)) {
               return unconst(NamedSharding::make(mesh.cast<std::shared_ptr<Mesh>>(), checked, kind, rule));
             }
             const auto& abstract =
                 value_from_python<AbstractMesh>(mesh, kOperation, "mesh", "a Mesh or AbstractMesh", "a Mesh");
             return unconst(NamedSharding::make_abstract(abstract, checked, kind, rule));
           }),
           py::arg_v("mesh", py::ellipsis(), "..."), py::arg_v("spec", py::ellipsis(), "..."), py::kw_only(),
           py::arg("memory_kind") = py::none(), py::arg("uneven") = py::none())
      .def_property_readonly(
          "mesh",
          [](const NamedSharding& self) -> std::variant<std::shared_ptr<Mesh>, AbstractMesh> {
            if (self.mesh()) return unconst(self.mesh());
            return self.abstract_mesh();
          },
          "Mesh or AbstractMesh.")
      .def_property_readonly(
          "spec", [](const NamedSharding& self) { return self.spec(); }, "PartitionSpec.")
      .def_property_readonly(
          "uneven",
          [](const NamedSharding& self) -> std::optional<std::string> {
            if (self.uneven() == Uneven::kLastShort) return "last-short";
            return std::nullopt;
          },
          "Treatment of uneven shapes: None or \"last-short\".")
      .def("__reduce__", [](const py::object& self) -> py::tuple {
        return pickled_by("named_sharding", py::type::of(self), self.attr("mesh"), self.attr("spec"),
                          self.attr("memory_kind"), self.attr("uneven"));
      });
  add_named_sharding_fast_paths(named);
  set_named_sharding_class(named);

  py::class_<SingleDeviceSharding, Sharding, std::shared_ptr<SingleDeviceSharding>>(
      module, "SingleDeviceSharding",
      R"(A sharding with the global array on one device.

Raises:
    TypeError: `device` is not a Device.

Example:
    >>> import artifex_devices as ad
    >>> ad.sharding.SingleDeviceSharding(ad.devices()[0]).num_devices
    1
)")
      .def(py::init([](py::handle device, const OptionalText& memory_kind) {
             constexpr std::string_view kOperation = "SingleDeviceSharding";
             auto& checked = value_from_python<Device>(device, kOperation, "device", "a Device", "devices()[0]");
             return unconst(SingleDeviceSharding::make(&checked, memory_kind_from_python(memory_kind, kOperation)));
           }),
           py::arg("device"), py::kw_only(), py::arg("memory_kind") = py::none())
      .def_property_readonly("_device", [](const SingleDeviceSharding& self) { return handle_of(self.device()); })
      .def("__reduce__", [](const py::object& self) -> py::tuple {
        return pickled_by("single_device_sharding", py::type::of(self), self.attr("_device"), self.attr("memory_kind"));
      });

  internal.def(
      "named_sharding_from_pickle",
      [](const py::type& kind, const py::object& mesh, const py::object& spec, const py::object& memory_kind,
         const py::object& uneven) {
        check_kind<NamedSharding>(kind);
        return py::object(kind(mesh, spec, py::arg("memory_kind") = memory_kind, py::arg("uneven") = uneven));
      },
      py::arg("kind"), py::arg("mesh"), py::arg("spec"), py::arg("memory_kind"), py::arg("uneven"));
  internal.def(
      "single_device_sharding_from_pickle",
      [](const py::type& kind, const py::object& device, const py::object& memory_kind) {
        check_kind<SingleDeviceSharding>(kind);
        return py::object(kind(device, py::arg("memory_kind") = memory_kind));
      },
      py::arg("kind"), py::arg("device"), py::arg("memory_kind"));
}

}  // namespace

void bind_sharding(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  bind_mesh(module);
  bind_sharding_base(module);
  bind_shardings(module);
  bind_process_rows(module);
  internal.def(
      "reshard_bytes",
      [](const Sharding& source, const Sharding& destination, py::handle global_shape, int64_t itemsize) {
        const Dims shape = dims_from_python(global_shape, "reshard_bytes", "global_shape");
        const IngressTotals totals = reshard_totals(source, destination, shape, itemsize, "reshard_bytes");
        py::dict result;
        result["bytes_in"] = totals.bytes;
        result["most_bytes_in"] = totals.most_bytes;
        result["devices_that_receive"] = totals.devices;
        return result;
      },
      py::arg("source"), py::arg("destination"), py::arg("global_shape"), py::arg("itemsize"),
      "Returns the bytes that devices must receive: bytes_in (in all), most_bytes_in (largest of one device), "
      "devices_that_receive.");
}

}  // namespace artifex_devices::bindings
