// SPDX-License-Identifier: Apache-2.0
#include "bind_mesh.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/mesh.h"
#include "axis_names.h"
#include "errors.h"
#include "mesh_args.h"
#include "mesh_short_cuts.h"
#include "numpy_bridge.h"
#include "python_modules.h"
#include "short_cut.h"
#include "shown.h"
#include "unconst.h"
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
                              operation, position, Py_TYPE(object.ptr())->tp_name, shown(object));
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

/// The product of the sizes, so that a small mesh is quick to make in a big world; all where that is wrong, for a
/// message that says how many there are.
int64_t devices_needed(const Dims& sizes, int64_t all) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > all / product) return all;
    product *= size;
  }
  return product;
}

void leave_mesh(const Mesh& self) {
  const py::tuple entered = meshes_entered();
  if (entered.empty() || &entered[entered.size() - 1].cast<const Mesh&>() != &self) {
    throw_error<Unavailable>("Mesh: left a mesh that is not the innermost one entered; expected {}; use `with` blocks",
                             self.to_string());
  }
  set_meshes_entered(entered[py::slice(0, static_cast<py::ssize_t>(entered.size()) - 1, 1)]);
}

std::shared_ptr<Mesh> mesh_from_python(py::handle devices, py::handle names, py::handle types) {
  auto [objects, shape] = objects_from_nested(devices);
  std::vector<AxisName> axis_names = axis_names_from_python(names, "Mesh");
  if (static_cast<int64_t>(axis_names.size()) != shape.size()) {
    throw_error(
        "Mesh: devices and axis_names do not fit; expected as many names as devices has dimensions, got devices of "
        "shape {} and {} names {}; reshape the devices, say np.array(devices()).reshape(2, 4), or name each dimension",
        to_string(shape), axis_names.size(), shown(names));
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
  for (int64_t i = 0; i < mesh.size(); ++i) objects.push_back(object_of((*mesh.devices())[i]));
  return objects;
}

py::object mesh_devices(const py::object& self) {
  // Built when asked for and kept on the object: a mesh of 10^6 devices costs nothing before.
  py::dict kept = self.attr("__dict__");
  if (!kept.contains("_devices")) {
    const auto& mesh = self.cast<const Mesh&>();
    const Dims shape = mesh.empty() ? Dims{} : mesh.abstract_mesh().axis_sizes();  // empty: None without dimensions
    kept["_devices"] = object_ndarray(shape, device_objects(mesh));
  }
  return kept["_devices"];
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

/// The smallest box of a mesh that has all devices of this process; it must have no others, as in JAX.
py::object local_mesh(const py::object& object) {
  const Mesh& self = object.cast<const Mesh&>();
  if (!self.is_multi_process()) return object;
  const DeviceList& devices = *self.devices();
  const Dims& sizes = self.abstract_mesh().axis_sizes();
  const int64_t count = devices.addressable_count();
  if (count == 0) {
    throw_error(
        "local_mesh: {} has no device of this process, {}; expected at least one; ask in one of the processes {}",
        self.to_string(), devices.client()->process_index(), fmt::join(devices.processes(), ", "));
  }
  const Dims strides = row_major_strides(sizes, 1);
  Dims begin = sizes;
  Dims end(sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < sizes.size(); ++d) {
      const int64_t at = devices.addressable_position(i) / strides[d] % sizes[d];
      begin[d] = std::min(begin[d], at);
      end[d] = std::max(end[d], at + 1);
    }
  }
  Dims shape(sizes.size(), 0);
  int64_t volume = 1;
  for (int64_t d = 0; d < sizes.size(); ++d) volume *= shape[d] = end[d] - begin[d];
  if (volume != count) {
    throw_error(
        "local_mesh: the {} devices of process {} in {} are no box of the mesh; expected them to be one, got parts of "
        "a box of {}; order the devices of the mesh by process, as make_mesh does",
        count, devices.client()->process_index(), self.to_string(), to_string(shape));
  }
  std::vector<Device*> own;  // in row-major order already: positions ascend
  for (int64_t i = 0; i < count; ++i) own.push_back(devices[devices.addressable_position(i)]);
  AbstractMesh abstract(self.abstract_mesh().axis_names(), shape, self.abstract_mesh().axis_types());
  return py::cast(unconst(Mesh::make(std::move(abstract), DeviceList::make(own, "local_mesh"), "local_mesh")));
}

size_t mesh_hash(const Mesh& mesh) { return mesh.hash(); }
bool same_mesh(const Mesh& a, const Mesh& b) { return a == b; }

}  // namespace

void bind_mesh(py::module_& module) {
  entered_meshes = PyContextVar_New("artifex_devices_meshes", nullptr);
  py::class_<Mesh, std::shared_ptr<Mesh>> bound(
      module, "Mesh", py::dynamic_attr(), py::metaclass(short_cut_metaclass()),
      ValueSlots<Mesh, &mesh_hash, &same_mesh>::setup(), R"(Devices laid out over named axes.

Equal meshes that are alive at the same time are one object. Axis types are Auto unless given; `make_mesh` gives Explicit.

Args:
    devices: ndarray or nested lists of Device, one dimension an axis.
    axis_names: one hashable a dimension, all different; one str for a single axis.
    axis_types: one AxisType for all axes, or a tuple of them.

Raises:
    TypeError: something in `devices` is no Device.
    ValueError: names and dimensions do not fit, a name or a device comes twice, devices of two worlds.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> with ad.simulate(8):
    ...     print(ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("data", "model")))
    Mesh('data': 2, 'model': 4, axis_types=(Auto, Auto))
)");
  bound
      // __new__ gives the interned object; __init__ then finds it made and does nothing.
      .def_static(
          "__new__",
          [](py::handle, py::handle devices, py::handle names, py::handle types) {
            return mesh_from_python(devices, names, types);
          },
          py::arg("cls"), py::arg("devices"), py::arg("axis_names"), py::arg("axis_types") = py::none())
      .def(py::init(&mesh_from_python), py::arg("devices"), py::arg("axis_names"), py::arg("axis_types") = py::none())
      .def_property_readonly("devices", &mesh_devices, "Read-only ndarray of Device in the mesh's shape.")
      .def_property_readonly(
          "device_ids",
          [](const Mesh& self) {
            std::vector<int64_t> ids;
            for (int64_t i = 0; i < self.size(); ++i) ids.push_back((*self.devices())[i]->id());
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
      .def_property_readonly("size", &Mesh::size, "Number of devices.")
      .def_property_readonly("empty", &Mesh::empty, "Whether there are no devices.")
      .def_property_readonly(
          "abstract_mesh", [](const Mesh& self) { return self.abstract_mesh(); }, "The axes without the devices.")
      .def_property_readonly(
          "local_mesh", &local_mesh,
          "The box of this process's devices; in one process the mesh itself. ValueError where they are no box.")
      .def_property_readonly("local_devices", &mesh_local_devices, "Devices of this process (list).")
      .def_property_readonly(
          "_internal_device_list",
          [](const Mesh& self) {
            if (self.empty()) {
              throw_error("Mesh: the empty mesh has no devices; expected one with devices; make one by make_mesh");
            }
            return unconst(self.devices());
          },
          "All devices in the mesh's order, as a DeviceList.")
      .def_property_readonly("_flat_devices_tuple", &mesh_flat_devices, "All devices in the mesh's order.")
      .def_property_readonly("is_multi_process", &Mesh::is_multi_process,
                             "Whether other processes than this one take part.")
      .def("__setattr__",
           [](const Mesh&, const std::string& name, py::handle) {
             PyErr_Format(PyExc_AttributeError, "Mesh: cannot set %s; a Mesh does not change; make another one",
                          name.c_str());
             throw py::error_already_set();
           })
      .def("__enter__",
           [](const py::object& self) {
             static_cast<void>(self.cast<const Mesh&>());  // where __init__ has not run, the error that says so
             set_meshes_entered(meshes_entered() + py::make_tuple(self));
             return self;
           })
      .def("__exit__", [](const Mesh& self, const py::args&) { leave_mesh(self); })
      .def("__reduce__",
           [](const py::object& self) -> py::tuple {
             const auto& mesh = self.cast<const Mesh&>();
             const std::string platform = mesh.empty() ? "cpu" : (*mesh.devices())[0]->platform();
             return py::make_tuple(
                 py::module_::import(python_modules::kCore).attr("_mesh_from_pickle"),
                 py::make_tuple(platform, self.attr("device_ids"), self.attr("axis_names"), self.attr("axis_types")));
           })
      .def("__copy__", [](const py::object& self) { return self; })
      .def(
          "__deepcopy__", [](const py::object& self, py::handle) { return self; }, py::arg("memo"))
      .def("__str__", &Mesh::to_string)
      .def("_repr_html_",
           [](const py::object& self) { return py::module_::import(python_modules::kHtml).attr("mesh_html")(self); })
      .def("__repr__", &Mesh::repr);
  shorten_mesh(bound);

  module.def("_entered_meshes", &meshes_entered);
  module.def(
      "_mesh_from_pickle",
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
  module.def(
      "_make_mesh",
      [](py::handle sizes, py::handle names, py::handle types, py::handle devices) {
        try {
          const Dims dims = dims_from_python(sizes, "make_mesh", "axis_shapes");
          std::vector<AxisName> axis_names = axis_names_from_python(names, "make_mesh");
          std::vector<AxisType> axis_types = axis_types_from_python(types, "make_mesh", dims.size());
          std::vector<Device*> pool;
          ClientRef client;
          if (devices.is_none()) {
            client = current_client();
            const int64_t needed = devices_needed(dims, client->device_count());
            for (int64_t i = 0; i < needed; ++i) pool.push_back(client->device(i));
          } else {
            pool = device_vector(objects_from_nested(devices).first, "make_mesh");
          }
          return unconst(make_mesh(dims, std::move(axis_names), std::move(axis_types), pool, "make_mesh"));
        } catch (const Error& error) {
          if (std::string_view(error.what()).starts_with("make_mesh")) throw;
          rethrow_with_context("make_mesh: ");
        }
      },
      py::arg("axis_shapes"), py::arg("axis_names"), py::arg("axis_types"), py::arg("devices"));
}

}  // namespace artifex_devices::bindings
