// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <cstring>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/device_assignment.h"
#include "bindings.h"
#include "class_members.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

constexpr std::string_view kCreate = "DeviceAssignment.create";
constexpr int64_t kMaxBytes = int64_t{1} << 28;

// Converts to row-major int64 without changing any number.
py::object as_int64(const py::object& array) {
  const std::string kind = py::str(array.attr("dtype").attr("kind"));
  if (kind != "b" && kind != "i" && kind != "u" && kind != "f") {
    throw_error<TypeMismatch>(
        "{}: the array is of dtype {}; expected integers; convert it, for example by x.astype(np.int32)", kCreate,
        std::string(py::str(array.attr("dtype"))));
  }
  const py::module_ numpy = py::module_::import("numpy");
  const auto all = [&](const py::object& mask) { return py::cast<bool>(py::bool_(mask.attr("all")())); };
  if (kind == "f" && !(all(numpy.attr("isfinite")(array)) && all(array.attr("__eq__")(numpy.attr("floor")(array))))) {
    throw_error(
        "{}: the array has numbers that are not integers; expected device ordinals, integers from 0; round them first",
        kCreate);
  }
  if ((kind == "f" || kind == "u") && !all(array.attr("__lt__")(py::float_(9223372036854775808.0)))) {
    throw_error("{}: the array has numbers of 2**63 or more; expected smaller device ordinals", kCreate);
  }
  return array.attr("astype")("int64");
}

DeviceAssignment create(const py::object& object) {
  py::object array = object;
  if (!is_ndarray(array)) {
    if (!py::hasattr(array, "__array__")) {
      throw_error<TypeMismatch>(
          "{}: the argument is of type {}; expected a 2-D ndarray of integers; convert it by np.array(x)", kCreate,
          Py_TYPE(object.ptr())->tp_name);
    }
    array = py::module_::import("numpy").attr("asarray")(object);
  }
  const auto shape = array.attr("shape").cast<std::vector<int64_t>>();
  if (shape.size() != 2) {
    throw_error<TypeMismatch>(
        "{}: the array has {} dimension{}, shape {}; expected 2, (replicas, computations); reshape it", kCreate,
        shape.size(), shape.size() == 1 ? "" : "s", std::string(py::str(array.attr("shape"))));
  }
  // Checked before anything is copied: an array of stride 0 may have more elements than fit in memory.
  if (shape[0] == 0 || shape[1] == 0 || shape[0] > DeviceAssignment::kMostDevices / shape[1]) {
    return DeviceAssignment::make(shape[0], shape[1], {}, kCreate);
  }
  const std::string bytes = as_int64(array).attr("tobytes")().cast<std::string>();
  std::vector<int64_t> ordinals(bytes.size() / sizeof(int64_t));
  std::memcpy(ordinals.data(), bytes.data(), bytes.size());
  return DeviceAssignment::make(shape[0], shape[1], std::move(ordinals), kCreate);
}

DeviceAssignment assignment_from_bytes(const py::object& data) {
  return DeviceAssignment::deserialize(bytes_argument(data, "DeviceAssignment.deserialize", kMaxBytes));
}

py::object device_ordinals(const DeviceAssignment& self) {
  return int64_ndarray({self.replica_count(), self.computation_count()}, self.ordinals());
}

}  // namespace

void bind_device_assignment(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<DeviceAssignment>(module, "DeviceAssignment", R"(Assignment of devices to the replicas of computations.

An immutable value. Equal assignments have equal hashes and, as XLA's DeviceAssignmentProto, equal bytes.

Example:
    >>> import numpy as np
    >>> from artifex_devices import xla_client
    >>> assignment = xla_client.DeviceAssignment.create(np.array([[0, 1], [2, 3]]))
    >>> assignment
    DeviceAssignment{replica_count=2, computation_count=2, Computation0{0 2} Computation1{1 3}}
    >>> assignment.device_ordinal(1, 0), assignment.logical_ids_for_device(1)
    (2, (0, 1))
    >>> xla_client.DeviceAssignment.deserialize(assignment.serialize()) == assignment
    True
)")
      .def_static("create", &create, py::arg("array"), R"(Creates an assignment.

Args:
    array: Device ordinals of shape (replicas, computations): integers from 0, or floats and bools equal to such integers.

Raises:
    TypeError: `array` is not an array, does not have 2 dimensions, or has another dtype.
    ValueError: It is empty, or a number is negative, repeated, not an integer, or beyond 64 bits.
)")
      .def_static("deserialize", &assignment_from_bytes, py::arg("data"),
                  R"(Reads the bytes of an XLA DeviceAssignmentProto.

Raises:
    TypeError: `data` is not a bytes-like object.
    ValueError: The bytes are not such a message, or `create` would refuse the assignment.
)")
      .def("replica_count", by_reference(&DeviceAssignment::replica_count), "Returns the number of replicas.")
      .def("computation_count", by_reference(&DeviceAssignment::computation_count),
           "Returns the number of computations of each replica.")
      .def(
          "device_ordinal",
          [](const DeviceAssignment& self, const IntArgument& replica, const IntArgument& computation) {
            constexpr std::string_view kOperation = "DeviceAssignment.device_ordinal";
            return self.device_ordinal(index_from_python(replica, kOperation, "replica"),
                                       index_from_python(computation, kOperation, "computation"));
          },
          py::arg("replica"), py::arg("computation"),
          "Returns the device of one replica of one computation. Raises IndexError if the number is out of range.")
      .def(
          "logical_ids_for_device",
          [](const DeviceAssignment& self, const IntArgument& device) {
            return self.logical_ids_for_device(
                index_from_python(device, "DeviceAssignment.logical_ids_for_device", "device_ordinal"));
          },
          py::arg("device_ordinal"),
          "Returns the (replica, computation) that a device runs. Raises ValueError if it runs none.")
      .def_property_readonly("device_ordinals", &device_ordinals,
                             "Device ordinals as a new int64 ndarray of shape (replicas, computations).")
      .def(
          "serialize", [](const DeviceAssignment& self) { return py::bytes(self.serialize()); },
          "Returns the bytes of XLA's DeviceAssignmentProto.")
      .def("__eq__", &equals<DeviceAssignment>)
      .def("__hash__", by_reference(&DeviceAssignment::hash))
      .def(
          "__reduce__",
          [](const py::object& self) -> py::tuple { return pickled_by("device_assignment", self.attr("serialize")()); })
      .def("__repr__", by_reference(&DeviceAssignment::to_string));
  internal.def("device_assignment", &assignment_from_bytes, py::arg("data"));  // for pickles, which cannot name methods
}

}  // namespace artifex_devices::bindings
