// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/mesh.h"
#include "bindings.h"
#include "class_members.h"
#include "cpython_calls.h"
#include "errors.h"
#include "fast_path.h"
#include "mesh_arguments.h"
#include "mesh_fast_paths.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_modules.h"
#include "python_text.h"
#include "value_slots.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

Device* device_from_python(py::handle object, std::string_view operation, int64_t position) {
  static PyTypeObject* const device_class = reinterpret_cast<PyTypeObject*>(py::type::of<Device>().ptr());
  Device* known = Py_TYPE(object.ptr()) == device_class ? value_in<Device>(object.ptr()) : nullptr;
  if (known != nullptr) return known;
  if (!py::isinstance<Device>(object)) {
    throw_error<TypeMismatch>("{}: devices[{}] is of type {}; expected a Device, got {}; take them from devices()",
                              operation, position, Py_TYPE(object.ptr())->tp_name, safe_repr(object));
  }
  return object.cast<Device*>();
}

std::vector<Device*> device_vector(const std::vector<py::object>& objects, std::string_view operation) {
  std::vector<Device*> devices;
  devices.reserve(objects.size());
  for (size_t i = 0; i < objects.size(); ++i) {
    devices.push_back(device_from_python(objects[i], operation, static_cast<int64_t>(i)));
  }
  return devices;
}

// The contexts entered with `with mesh:`, innermost last: a tuple in a context variable.
PyObject* entered_meshes = nullptr;

py::tuple meshes_entered() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(entered_meshes, nullptr, &value) < 0) throw py::error_already_set();
  return value ? py::reinterpret_steal<py::tuple>(value) : py::tuple();
}

void set_meshes_entered(const py::object& meshes) {
  PyObject* token = PyContextVar_Set(entered_meshes, meshes.ptr());
  if (token == nullptr) throw py::error_already_set();
  Py_DECREF(token);
}

void leave_mesh(const Mesh& self) {
  const py::tuple entered = meshes_entered();
  const auto count = static_cast<py::ssize_t>(entered.size());
  py::ssize_t at = count - 1;
  while (at >= 0 && &entered[static_cast<size_t>(at)].cast<const Mesh&>() != &self) --at;
  // It ends even if it is not the innermost one, as the mesh of a generator that is closed in another mesh's block.
  if (at >= 0) set_meshes_entered(entered[py::slice(0, at, 1)] + entered[py::slice(at + 1, count, 1)]);
  if (at >= 0 && at == count - 1) return;
  throw_error<Unavailable>(
      "Mesh: meshes were left in the wrong order: {} is not the mesh that was entered last; leave inner meshes first, "
      "or use `with` blocks",
      self.to_string());
}

std::shared_ptr<Mesh> mesh_from_python(py::handle devices, py::handle names, py::handle types) {
  if (names.is_none()) {
    throw_error<TypeMismatch>(
        "Mesh: axis_names is missing; expected a name for each dimension of devices, got None; write "
        "ad.Mesh(ad.devices(), ('x',))");
  }
  auto [objects, shape] = objects_from_nested(devices);
  std::vector<AxisName> axis_names = axis_names_from_python(names, "Mesh");
  if (static_cast<int64_t>(axis_names.size()) != shape.size()) {
    throw_error(
        "Mesh: devices and axis_names do not fit; expected one name for each dimension, got devices of shape {} and {} "
        "names {}; reshape the devices, for example np.array(devices()).reshape(2, 4), or name each dimension",
        to_string(shape), axis_names.size(), safe_repr(names));
  }
  std::vector<AxisType> axis_types = axis_types_from_python(types, "Mesh", shape.size());
  const bool is_none = axis_names.empty() && objects.size() == 1 && objects[0].is_none();  // np.empty((), object)
  if (is_none || (objects.empty() && shape.size() <= 1)) return unconst(Mesh::make_empty());
  AbstractMesh abstract(std::move(axis_names), shape, std::move(axis_types));
  return unconst(Mesh::make(std::move(abstract), DeviceList::make(device_vector(objects, "Mesh"), "Mesh"), "Mesh"));
}

std::vector<py::object> device_objects(const Mesh& mesh) {
  std::vector<py::object> objects;
  if (mesh.empty()) return objects;
  const DeviceObjects object_of(*mesh.devices());
  objects.reserve(static_cast<size_t>(mesh.size()));
  for (Device* const device : mesh.devices()->devices()) objects.push_back(object_of(device));
  return objects;
}

py::object mesh_devices(const py::object& self) {
  // Built at the first access and cached on the object, because it is expensive for a mesh of 10^6 devices.
  const py::dict attributes = self.attr("__dict__");
  if (!attributes.contains("_devices")) {
    const auto& mesh = self.cast<const Mesh&>();
    const Dims shape = mesh.empty() ? Dims{} : mesh.abstract_mesh().axis_sizes();  // empty: None without dimensions
    return attributes.attr("setdefault")("_devices", object_ndarray(shape, device_objects(mesh)));
  }
  return attributes["_devices"];
}

py::tuple mesh_flat_devices(const Mesh& self) { return py::tuple(py::cast(device_objects(self))); }

py::list mesh_local_devices(const Mesh& self) {
  py::list result;
  const int64_t count = self.empty() ? 0 : self.devices()->addressable_count();
  if (count == 0) return result;
  const DeviceObjects object_of(*self.devices());
  for (int64_t i = 0; i < count; ++i) {
    result.append(object_of((*self.devices())[self.devices()->addressable_position(i)]));
  }
  return result;
}

size_t mesh_hash(const Mesh& mesh) { return mesh.hash(); }
bool same_mesh(const Mesh& a, const Mesh& b) { return a == b; }

}  // namespace

void bind_mesh(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  entered_meshes = PyContextVar_New("artifex_devices_meshes", nullptr);
  py::class_<Mesh, std::shared_ptr<Mesh>> bound(
      module, "Mesh", py::dynamic_attr(), py::metaclass(fast_path_metaclass()),
      ValueSlots<Mesh, &mesh_hash, &same_mesh>::setup(), R"(Devices arranged over named axes.

Equal meshes that are alive at the same time are one object. Axis types are Auto by default; in `make_mesh` Explicit.

Args:
    devices: ndarray or nested lists of Device, with one dimension for each axis.
    axis_names: Distinct hashable names, one for each dimension; a str for a single axis.
    axis_types: AxisType of all axes, or a tuple of one AxisType for each axis.

Raises:
    TypeError: An item of `devices` is not a Device.
    ValueError: The numbers of names and dimensions differ, a name or a device is repeated, or the devices belong to two worlds.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> with ad.simulate(8):
    ...     print(ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("data", "model")))
    Mesh('data': 2, 'model': 4, axis_types=(Auto, Auto))
)");
  bound
      // __new__ returns the interned object; __init__ then finds it initialized and does nothing.
      .def_static(
          "__new__",
          [](py::handle, py::handle devices, py::handle names, py::handle types) {
            return mesh_from_python(devices, names, types);
          },
          py::arg("cls"), py::arg("devices"), py::arg("axis_names") = py::none(), py::arg("axis_types") = py::none())
      .def(py::init(&mesh_from_python), py::arg("devices"), py::arg("axis_names") = py::none(),
           py::arg("axis_types") = py::none())
      .def_property_readonly("devices", &mesh_devices, "Read-only ndarray of Device in the mesh's shape.")
      .def_property_readonly(
          "device_ids",
          [](const Mesh& self) {
            std::vector<int64_t> ids;
            for (int64_t i = 0; i < self.size(); ++i) ids.push_back((*self.devices())[Position(i)]->id().number());
            return int64_ndarray(self.empty() ? Dims{0} : self.abstract_mesh().axis_sizes(), ids);
          },
          "ndarray of the devices' ids in the mesh's shape.")
      .def_property_readonly(
          "axis_names", [](const Mesh& self) { return axis_names_to_python(self.abstract_mesh().axis_names()); },
          "Names, major to minor (tuple).")
      .def_property_readonly(
          "axis_sizes", [](const Mesh& self) { return tuple_from_dims(self.abstract_mesh().axis_sizes()); },
          "Sizes, major to minor (tuple of int).")
      .def_property_readonly(
          "axis_types", [](const Mesh& self) { return axis_types_to_python(self.abstract_mesh().axis_types()); },
          "AxisType of each axis (tuple).")
      .def_property_readonly(
          "shape", [](const Mesh& self) { return axis_sizes_by_name(self.abstract_mesh()); },
          "OrderedDict of axis name to size.")
      .def_property_readonly(
          "shape_tuple",
          [](const Mesh& self) { return py::tuple(axis_sizes_by_name(self.abstract_mesh()).attr("items")()); },
          "((name, size), ...).")
      .def_property_readonly("size", by_reference(&Mesh::size), "Number of devices.")
      .def_property_readonly("empty", by_reference(&Mesh::empty), "Whether there are no devices.")
      .def_property_readonly(
          "abstract_mesh", [](const Mesh& self) { return self.abstract_mesh(); },
          "AbstractMesh of the axes, without devices.")
      .def_property_readonly(
          "local_mesh",
          [](const py::object& self) -> py::object {
            const auto mesh = self.cast<std::shared_ptr<Mesh>>();
            return mesh->is_multi_process() ? py::cast(unconst(local_mesh(mesh))) : self;
          },
          "Mesh of this process's devices; the same object in one process. Raises ValueError if they are not "
          "a box of the mesh.")
      .def_property_readonly("local_devices", &mesh_local_devices, "List of the devices of this process.")
      .def_property_readonly(
          "_internal_device_list",
          [](const Mesh& self) {
            if (self.empty()) {
              throw_error("Mesh: the empty mesh has no devices; expected a mesh with devices; create one by make_mesh");
            }
            return unconst(self.devices());
          },
          "DeviceList of all devices in the mesh's order.")
      .def_property_readonly("_flat_devices_tuple", &mesh_flat_devices, "Tuple of all devices in the mesh's order.")
      .def_property_readonly("is_multi_process", by_reference(&Mesh::is_multi_process),
                             "Whether it has devices of other processes.")
      .def("__setattr__",
           [](const Mesh&, const std::string& name, py::handle) {
             PyErr_Format(PyExc_AttributeError, "Mesh: cannot set %s; a Mesh is immutable; create another Mesh",
                          name.c_str());
             throw py::error_already_set();
           })
      .def("__enter__",
           [](const py::object& self) {
             static_cast<void>(self.cast<const Mesh&>());  // raises where __init__ has not run
             set_meshes_entered(meshes_entered() + py::make_tuple(self));
             return self;
           })
      .def("__exit__", [](const Mesh& self, const py::args&) { leave_mesh(self); })
      .def("__reduce__",
           [](const py::object& self) -> py::tuple {
             const auto& mesh = self.cast<const Mesh&>();
             const std::string platform = mesh.empty() ? "cpu" : mesh.devices()->front()->platform();
             return pickled_by("mesh", platform, self.attr("device_ids"), self.attr("axis_names"),
                               self.attr("axis_types"));
           })
      .def("__str__", by_reference(&Mesh::to_string))
      .def("_repr_html_", [](const py::object& self) { return call_python(python_modules::kHtml, "mesh_html", self); })
      .def("__repr__", by_reference(&Mesh::repr));
  add_mesh_fast_paths(bound);

  internal.def("entered_meshes", &meshes_entered);
  internal.def(
      "mesh_from_pickle",
      [](const std::string& platform, py::handle ids, py::handle names, py::handle types) {
        auto [objects, shape] = objects_from_nested(ids);
        if (objects.empty()) return unconst(Mesh::make_empty());
        std::vector<int64_t> numbers;
        for (const py::object& id : objects) numbers.push_back(id.cast<int64_t>());
        AbstractMesh abstract(axis_names_from_python(names, "Mesh"), shape,
                              axis_types_from_python(types, "Mesh", shape.size()));
        return unconst(
            Mesh::make(std::move(abstract), DeviceList::make(find_devices(platform, numbers), "Mesh"), "Mesh"));
      },
      py::arg("platform"), py::arg("device_ids"), py::arg("axis_names"), py::arg("axis_types"));
  internal.def(
      "make_mesh",
      [](py::handle sizes, py::handle names, py::handle types, py::handle devices) {
        try {
          const Dims dims = dims_from_python(sizes, "make_mesh", "axis_shapes");
          std::vector<AxisName> axis_names = axis_names_from_python(names, "make_mesh");
          std::vector<AxisType> axis_types = axis_types_from_python(types, "make_mesh", dims.size());
          if (devices.is_none()) {
            return unconst(
                make_mesh(dims, std::move(axis_names), std::move(axis_types), *current_client(), "make_mesh"));
          }
          const std::vector<Device*> listed = device_vector(objects_from_nested(devices).first, "make_mesh");
          return unconst(make_mesh(dims, std::move(axis_names), std::move(axis_types), listed, "make_mesh"));
        } catch (const Error&) {
          rethrow_with_context("make_mesh: ");
        }
      },
      py::arg("axis_shapes"), py::arg("axis_names"), py::arg("axis_types"), py::arg("devices"));
}

}  // namespace artifex_devices::bindings
