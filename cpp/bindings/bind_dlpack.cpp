// SPDX-License-Identifier: Apache-2.0
#include <pybind11/critical_section.h>

#include <array>
#include <optional>

#include "array_methods.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/dlpack.h"
#include "artifex_devices/transfer/place.h"
#include "bindings.h"
#include "gil.h"
#include "pybind.h"
#include "python_owner.h"
#include "python_text.h"
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
    const py::object number =
        py::reinterpret_steal<py::object>(sleeping_at_exit([&] { return PyNumber_Index(item.ptr()); }));
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

/// A consumer's stream of CUDA. The value is complete when the capsule is returned, so no stream has to wait for it.
void check_stream(py::handle stream, const char* operation) {
  if (stream.is_none()) return;
  const bool is_int = PyLong_Check(stream.ptr()) && !PyBool_Check(stream.ptr());
  const int64_t number = is_int ? PyLong_AsLongLong(stream.ptr()) : 0;
  if (PyErr_Occurred()) PyErr_Clear();  // a handle beyond 63 bits
  if (is_int && number != 0) return;
  constexpr const char* kMessage =
      "{}: stream is {}; expected None, -1 for no stream, 1 for the legacy default stream, 2 for that of the thread, or "
      "the handle of a stream; write 1 instead of 0";
  if (!is_int) throw_error<TypeMismatch>(kMessage, operation, safe_repr(stream));
  throw_error(kMessage, operation, safe_repr(stream));
}

}  // namespace

py::capsule dlpack_of(const ArrayRef& array, py::handle stream, py::handle max_version, py::handle dl_device,
                      py::handle copy) {
  constexpr const char* kOperation = "__dlpack__";
  check_one_device(*array, kOperation);
  const int gpu = cuda_ordinal(*array);
  const dlpack::DeviceId own = gpu >= 0 ? dlpack::DeviceId{dlpack::kCuda, gpu} : kHostDevice;
  if (gpu >= 0) {
    check_stream(stream, kOperation);
  } else if (!stream.is_none()) {
    throw_error<Unavailable>("{}: stream is {}; expected None, as data on CPU has no stream; leave it out", kOperation,
                             safe_repr(stream));
  }
  if (!dl_device.is_none()) {
    const auto [type, id] = int_pair(dl_device, kOperation, "dl_device", "(1, 0)");
    if (gpu >= 0 && (type != own.type || id != own.id)) {
      throw_error<UnsupportedBuffer>(
          "{}: dl_device is ({}, {}); expected ({}, {}), where the Array is; leave it out, or pass its value on the "
          "host: device_get(x)",
          kOperation, type, id, own.type, own.id);
    }
    if (gpu < 0 && (type != own.type || id < 0 || id >= array->sharding()->devices()->client()->device_count())) {
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
  if (version.first == 0) return capsule_of(export_dlpack(std::move(view), own), kName);
  return capsule_of(export_dlpack_versioned(std::move(view), copies, own), kVersionedName);
}

py::tuple dlpack_device_of(const Array& array) {
  check_one_device(array, "__dlpack_device__");
  const int gpu = cuda_ordinal(array);
  return gpu >= 0 ? py::tuple(py::make_tuple(dlpack::kCuda, gpu)) : py::tuple(py::make_tuple(dlpack::kCpu, 0));
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

/// The memory of a capsule, and where it is.
struct Imported {
  HostView view;
  dlpack::DeviceId device;
};

Imported import_capsule(const py::object& capsule) {
  const py::scoped_critical_section lock(capsule);  // its memory is taken once
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
    Imported imported{view_of_dlpack(managed->tensor, managed->flags), managed->tensor.device};
    take(capsule, managed, kUsedVersionedName, &imported.view);
    return imported;
  }
  if (PyCapsule_IsValid(capsule.ptr(), kName)) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    Imported imported{view_of_dlpack(managed->tensor, 0), managed->tensor.device};
    take(capsule, managed, kUsedName, &imported.view);
    return imported;
  }
  const char* name = PyCapsule_GetName(capsule.ptr());
  if (name == nullptr) PyErr_Clear();
  throw_error<UnsupportedBuffer>(
      "{}: the capsule is named {:?}; expected \"dltensor_versioned\" or \"dltensor\", which can be taken once; get a "
      "new capsule from the producer",
      kImport, name == nullptr ? "" : name);
}

/// The sharding over the CUDA device with that number: `wanted`, if it is over it, else of this process's own devices.
ShardingRef sharding_of_gpu(int ordinal, const ShardingRef& wanted) {
  const auto is_there = [&](const Device& device) {
    return !device.client().is_compile_only() && device.is_addressable() &&
           device.space(MemoryKind::kDevice).cuda_ordinal() == ordinal;
  };
  const bool is_device_kind = wanted && wanted->memory_kind() == MemoryKind::kDevice;
  if (is_device_kind && is_there(*wanted->devices()->front())) return wanted;
  for (const ClientRef& client : {current_client(), client_of_platform("cuda")}) {
    if (!client) continue;
    for (const DeviceId id : client->device_ids()) {
      if (is_there(*client->device(id))) return sharding_of(client->device(id));
    }
  }
  throw_error<UnsupportedBuffer>(
      "{}: the memory is of CUDA device {}, which this program does not have; expected one of devices(\"cuda\"), outside "
      "of simulated worlds; copy it to the host in the producer first",
      kImport, ordinal);
}

ArrayRef array_of_gpu(Imported imported, const ShardingRef& wanted, std::optional<bool> copy) {
  const ShardingRef own = sharding_of_gpu(imported.device.id, wanted);
  if (wanted && own != wanted && *own != *wanted && copy == false) {
    throw_error(
        "{}: copy=False, but a copy is needed: the requested device is not the one where the memory is, {}; leave "
        "copy or device out",
        kImport, own->devices()->front()->to_string());
  }
  return without_gil([&] {
    ArrayRef array = array_from_cuda(std::move(imported.view), own, copy);
    if (!wanted || own == wanted || *own == *wanted) return array;
    return place(array, {.sharding = wanted, .committed = true});
  });
}

ShardingRef sharding_of_argument(py::handle device) {
  if (device.is_none()) return nullptr;
  if (py::isinstance<Device>(device)) return sharding_of(device.cast<Device*>());
  if (!py::isinstance<Sharding>(device)) {
    throw_error<TypeMismatch>(
        "{}: device is of type {}; expected None, a Device or a Sharding, got {}; take a Device from devices()",
        kImport, type_of(device), safe_repr(device));
  }
  auto sharding = device.cast<std::shared_ptr<Sharding>>();
  check_has_devices(*sharding, "from_dlpack");
  return sharding;
}

}  // namespace

void bind_dlpack(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "check_cuda_device", [](int number, py::handle device) { sharding_of_gpu(number, sharding_of_argument(device)); },
      py::arg("number"), py::arg("device"), "Raises BufferError for memory of a GPU that this program does not have.");
  internal.def(
      "array_from_dlpack",
      [](const py::object& capsule, py::handle device, py::handle copy) {
        ShardingRef sharding = sharding_of_argument(device);
        if (sharding) check_dlpack_target(*sharding);  // before the capsule is taken
        std::optional<bool> copies;
        if (!copy.is_none()) copies = py::cast<bool>(copy);
        Imported imported = import_capsule(capsule);
        if (imported.device.type == dlpack::kCuda) return array_of_gpu(std::move(imported), sharding, copies);
        if (!sharding) sharding = sharding_of(current_client()->default_device());
        // The release of a dropped view's owner is queued until this thread takes the GIL again.
        return without_gil([&] { return array_from_dlpack(std::move(imported.view), sharding, copies); });
      },
      py::arg("capsule"), py::arg("device"), py::arg("copy"));
}

}  // namespace artifex_devices::bindings
