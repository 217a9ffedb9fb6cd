// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include <array>
#include <optional>

#include "array_methods.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/dlpack.h"
#include "bindings.h"
#include "gil.h"
#include "python_owner.h"
#include "safe_repr.h"
#include "world.h"

// DLPack capsules. A capsule frees its tensor unless a consumer has taken it, which renames the capsule; then the
// consumer frees it.
namespace artifex_devices::bindings {
namespace {

using dlpack::Managed;
using dlpack::ManagedVersioned;

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";
constexpr const char* kImport = "from_dlpack";

std::string type_of(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// Destructor of a capsule; does nothing if a consumer has taken it.
template <class T>
void destroy_capsule(PyObject* capsule) {
  const char* name = std::is_same_v<T, ManagedVersioned> ? kVersionedName : kName;
  if (!PyCapsule_IsValid(capsule, name)) return;
  DlpackDeleter()(static_cast<T*>(PyCapsule_GetPointer(capsule, name)));
}

template <class T>
py::capsule capsule_of(DlpackRef<T> managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed.get(), name, &destroy_capsule<T>);
  if (capsule == nullptr) throw py::error_already_set();
  managed.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

// A pair of ints, as max_version and dl_device are.
std::pair<int64_t, int64_t> int_pair(py::handle object, const char* operation, const char* what, const char* example) {
  std::array<int64_t, 2> numbers{};
  bool good = PyTuple_Check(object.ptr()) && PyTuple_GET_SIZE(object.ptr()) == 2;
  for (size_t i = 0; good && i < 2; ++i) {
    const py::handle item = PyTuple_GET_ITEM(object.ptr(), static_cast<py::ssize_t>(i));
    if (!PyIndex_Check(item.ptr())) {
      good = false;
      break;
    }
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
    if (!number) throw py::error_already_set();
    numbers[i] = PyLong_AsLongLong(number.ptr());
    if (PyErr_Occurred()) {  // beyond 64 bits
      PyErr_Clear();
      good = false;
    }
  }
  if (!good) {
    throw_error<TypeMismatch>("{}: {} is not a pair of integers; expected a tuple such as {}, got {}", operation, what,
                              example, safe_repr(object));
  }
  return {numbers[0], numbers[1]};
}

}  // namespace

py::capsule dlpack_of(const ArrayRef& array, py::handle stream, py::handle max_version, py::handle dl_device,
                      py::handle copy) {
  constexpr const char* kOperation = "__dlpack__";
  check_one_device(*array, kOperation);
  if (!stream.is_none()) {
    throw_error<Unavailable>("{}: stream is {}; expected None, as data on CPU has no stream; leave it out", kOperation,
                             safe_repr(stream));
  }
  if (!dl_device.is_none()) {
    const auto [type, id] = int_pair(dl_device, kOperation, "dl_device", "(1, 0)");
    if (type != dlpack::kCpu || id < 0 || id >= array->sharding()->devices()->client()->device_count()) {
      throw_error<UnsupportedBuffer>(
          "{}: dl_device is ({}, {}); expected (1, 0), the host's memory; leave it out and move the data in the "
          "consumer",
          kOperation, type, id);
    }
  }
  DlpackVersion version{0, 8};
  if (!max_version.is_none()) version = int_pair(max_version, kOperation, "max_version", "(1, 0)");
  check_dlpack_version(array->dtype(), version, kOperation);
  if (!copy.is_none() && !PyBool_Check(copy.ptr())) {
    throw_error<TypeMismatch>("{}: copy is of type {}; expected None, True or False, got {}; leave it out", kOperation,
                              Py_TYPE(copy.ptr())->tp_name, safe_repr(copy));
  }
  const bool copies = copy.ptr() == Py_True;
  auto view = without_gil([&] { return dlpack_view(array, copies); });
  if (version.first == 0) return capsule_of(export_dlpack(std::move(view)), kName);
  return capsule_of(export_dlpack_versioned(std::move(view), copies), kVersionedName);
}

py::tuple dlpack_device_of(const Array& array) {
  check_one_device(array, "__dlpack_device__");
  return py::make_tuple(dlpack::kCpu, 0);
}

namespace {

// Takes the capsule's tensor: from now on dropping the view's owner frees it.
template <class T>
void take(const py::object& capsule, T* managed, const char* used_name, HostView* view) {
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  // Deleters of producers may need the GIL.
  view->owner = python_owner(managed, [](void* pointer) {
    auto* taken = static_cast<T*>(pointer);
    if (taken->deleter != nullptr) taken->deleter(taken);
  });
}

HostView view_of_capsule(const py::object& capsule) {
  if (!PyCapsule_CheckExact(capsule.ptr())) {
    throw_error<TypeMismatch>("{}: __dlpack__() returned a {}; expected a capsule; the object does not follow DLPack",
                              kImport, type_of(capsule));
  }
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName)) {
    auto* managed = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName));
    if (managed->version.major != 1) {
      throw_error<UnsupportedBuffer>("{}: the capsule is of DLPack {}.{}; expected version 1; use a matching producer",
                                     kImport, managed->version.major, managed->version.minor);
    }
    HostView view = view_of_dlpack(managed->tensor, managed->flags);
    take(capsule, managed, kUsedVersionedName, &view);
    return view;
  }
  if (PyCapsule_IsValid(capsule.ptr(), kName)) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    HostView view = view_of_dlpack(managed->tensor, 0);
    take(capsule, managed, kUsedName, &view);
    return view;
  }
  const char* name = PyCapsule_GetName(capsule.ptr());
  if (name == nullptr) PyErr_Clear();
  throw_error<UnsupportedBuffer>(
      "{}: the capsule is named {:?}; expected \"dltensor_versioned\" or \"dltensor\", which can be taken once; get a "
      "new capsule from the producer",
      kImport, name == nullptr ? "" : name);
}

}  // namespace

void bind_dlpack(py::module_& module) {
  module.def(
      "_array_from_dlpack",
      [](const py::object& capsule, py::handle device, py::handle copy) {
        ShardingRef sharding;
        if (device.is_none()) {
          sharding = sharding_of(current_client()->default_device());
        } else if (py::isinstance<Device>(device)) {
          sharding = sharding_of(device.cast<Device*>());
        } else if (py::isinstance<Sharding>(device)) {
          sharding = device.cast<std::shared_ptr<Sharding>>();
          check_has_devices(*sharding, "from_dlpack");
        } else {
          throw_error<TypeMismatch>(
              "{}: device is of type {}; expected None, a Device or a Sharding, got {}; take a Device from devices()",
              kImport, type_of(device), safe_repr(device));
        }
        check_dlpack_target(*sharding);  // before the capsule is taken
        std::optional<bool> copies;
        if (!copy.is_none()) copies = py::cast<bool>(copy);
        HostView view = view_of_capsule(capsule);
        // The release of a dropped view's owner is queued until this thread takes the GIL again.
        return without_gil([&] { return array_from_dlpack(std::move(view), sharding, copies); });
      },
      py::arg("capsule"), py::arg("device"), py::arg("copy"));
}

}  // namespace artifex_devices::bindings
