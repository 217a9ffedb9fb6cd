// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/device_list.h"
#include "bindings.h"
#include "class_members.h"
#include "pybind.h"
#include "python_modules.h"
#include "python_text.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

using List = std::shared_ptr<DeviceList>;

py::tuple handles_of(const DeviceList& self, int64_t start, int64_t step, int64_t count) {
  py::tuple result(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] = handle_of(self[Position(start + i * step)]);
  return result;
}

py::tuple handles_of(const DeviceList& self) { return handles_of(self, 0, 1, self.size()); }

// Reports every wrong item at once, except for the tail of a long list.
List list_from_python(const py::object& assignment) {
  constexpr const char* kExpected = "expected a tuple or list of Devices of one client";
  if (py::isinstance<DeviceList>(assignment)) return assignment.cast<List>();
  if (!PyTuple_Check(assignment.ptr()) && !PyList_Check(assignment.ptr())) {
    throw_error<TypeMismatch>(
        "DeviceList: device_assignment is of type {}; {}, got {}; write DeviceList(tuple(devices()))",
        Py_TYPE(assignment.ptr())->tp_name, kExpected, safe_repr(assignment));
  }
  constexpr int kShown = 8;
  std::vector<Device*> devices;
  std::string errors;
  int count = 0;
  const py::tuple items(assignment);
  for (size_t i = 0; i < items.size(); ++i) {
    const py::handle item = items[i];
    if (py::isinstance<Device>(item)) {
      devices.push_back(item.cast<Device*>());
    } else if (++count <= kShown) {
      errors += fmt::format("{}[{}] is {} of type {}", count == 1 ? "" : ", ", i, safe_repr(item),
                            Py_TYPE(item.ptr())->tp_name);
    }
  }
  if (count > kShown) errors += fmt::format(", and {} more", count - kShown);
  if (count > 0) {
    throw_error<TypeMismatch>("DeviceList: in device_assignment {}; {}; take them from devices()", errors, kExpected);
  }
  return std::const_pointer_cast<DeviceList>(DeviceList::make(std::move(devices), "DeviceList"));
}

py::object item_of(const DeviceList& self, const py::object& index) {
  if (PySlice_Check(index.ptr())) {
    py::ssize_t start = 0;
    py::ssize_t stop = 0;
    py::ssize_t step = 0;
    py::ssize_t count = 0;
    if (!index.cast<py::slice>().compute(self.size(), &start, &stop, &step, &count)) throw py::error_already_set();
    return handles_of(self, start, step, count);
  }
  if (!PyIndex_Check(index.ptr())) {
    throw_error<TypeMismatch>("DeviceList: index is of type {}; expected an int or a slice, got {}; write devices[0]",
                              Py_TYPE(index.ptr())->tp_name, safe_repr(index));
  }
  const py::ssize_t number =
      PyNumber_AsSsize_t(index.ptr(), nullptr);  // clips large numbers, which are out of range anyway
  if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
  const int64_t position = number < 0 ? number + self.size() : number;
  if (position < 0 || position >= self.size()) {
    throw_error<IndexOutOfRange>("DeviceList: index {} is out of range; expected {} to {}; the list has {} device{}",
                                 safe_repr(index), -self.size(), self.size() - 1, self.size(),
                                 self.size() == 1 ? "" : "s");
  }
  return py::cast(handle_of(self[Position(position)]));
}

}  // namespace

void bind_device_list(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<DeviceList, List>(module, "DeviceList",
                               R"(An ordered list of devices of one client. Immutable and hashable.

Args:
    device_assignment: Tuple or list of Device, or a DeviceList.

Raises:
    TypeError: An item is not a Device.
    ValueError: The list is empty, a device is repeated, or the devices belong to different clients.

Example:
    >>> from artifex_devices import xla_client
    >>> client = xla_client.make_cpu_client(num_devices=4)
    >>> devices = xla_client.DeviceList(tuple(client.devices()))
    >>> len(devices), devices[-1], devices.memory_kinds
    (4, CpuDevice(id=3), ('device', 'pinned_host', 'unpinned_host'))
)")
      .def(py::init(&list_from_python), py::arg("device_assignment"))
      .def("__len__", by_reference(&DeviceList::size))
      .def("__getitem__", &item_of, py::arg("index"), "Returns a Device, or a tuple of Devices for a slice.")
      .def("__iter__", [](const DeviceList& self) { return py::iter(handles_of(self)); })
      .def("__contains__",
           [](const DeviceList& self, py::handle object) {
             return py::isinstance<Device>(object) && self.contains(object.cast<Device*>());
           })
      .def_property_readonly("is_fully_addressable", by_reference(&DeviceList::is_fully_addressable),
                             "Whether all devices belong to this process.")
      .def_property_readonly(
          "addressable_device_list",
          [](const py::object& self) -> py::object {
            const auto& list = self.cast<const DeviceList&>();
            if (list.is_fully_addressable()) return self;
            std::vector<Device*> addressable;
            for (int64_t i = 0; i < list.addressable_count(); ++i)
              addressable.push_back(list[list.addressable_position(i)]);
            if (addressable.empty()) {
              throw_error(
                  "addressable_device_list: no device of the list belongs to this process, {}; expected at least one; "
                  "see process_indices",
                  list.client()->process_index().number());
            }
            return py::cast(
                std::const_pointer_cast<DeviceList>(DeviceList::make(addressable, "addressable_device_list")));
          },
          "DeviceList of the devices of this process; the same object if it has all devices. Raises "
          "ValueError if this process has no devices.")
      .def_property_readonly(
          "process_indices",
          [](const DeviceList& self) {
            py::set result;
            for (const ProcessIndex process : self.processes()) result.add(py::int_(process.number()));
            return result;
          },
          "Ranks of the processes that own the devices (set of int).")
      .def_property_readonly(
          "default_memory_kind", [](const DeviceList&) { return std::string(to_string(MemoryKind::kDevice)); },
          "Default memory kind of data: \"device\".")
      .def_property_readonly(
          "memory_kinds",
          [](const DeviceList&) {
            return py::tuple(
                make_list(kMemoryKinds, [](MemoryKind kind) { return py::str(std::string(to_string(kind))); }));
          },
          "Memory kinds of all the devices (tuple of str).")
      .def_property_readonly(
          "device_kind", [](const DeviceList& self) { return self.front()->device_kind(); },
          "Name of the hardware, such as \"cpu\".")
      .def("__eq__", &equals<DeviceList>)
      .def("__hash__", [](const DeviceList& self) { return self.hash() >> 2; })
      .def("__reduce__",
           [](const DeviceList& self) -> py::tuple {
             py::tuple ids(static_cast<size_t>(self.size()));
             for (int64_t i = 0; i < self.size(); ++i) ids[static_cast<size_t>(i)] = self[Position(i)]->id().number();
             return pickled_by("device_list", self.front()->platform(), ids);
           })
      .def("__repr__", [](const DeviceList& self) { return py::repr(handles_of(self)); });

  internal.def(
      "device_list_from_pickle",
      [](const std::string& platform, const std::vector<int64_t>& ids) {
        return std::const_pointer_cast<DeviceList>(DeviceList::make(find_devices(platform, ids), "unpickle"));
      },
      py::arg("platform"), py::arg("device_ids"));
}

}  // namespace artifex_devices::bindings
