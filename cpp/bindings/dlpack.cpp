// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "array_interop.h"
#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "bindings.h"
#include "dlpack_abi.h"
#include "gil.h"
#include "python_owner.h"
#include "shard_index.h"
#include "shown.h"
#include "world.h"

// DLPack both ways. A capsule that nobody takes gives its tensor back; one that is taken is renamed, and its taker
// does.
namespace artifex_devices::bindings {
namespace {

using dlpack::ElementType;
using dlpack::Managed;
using dlpack::ManagedVersioned;
using dlpack::Tensor;

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

// In the order of DType: code and bits.
constexpr std::array<std::pair<uint8_t, uint8_t>, kDTypeCount> kElements = {{
    {6, 8},  {0, 8},  {0, 16}, {0, 32},  {0, 64}, {1, 8},  {1, 16}, {1, 32}, {1, 64}, {2, 16},
    {2, 32}, {2, 64}, {5, 64}, {5, 128}, {4, 16}, {7, 8},  {8, 8},  {9, 8},  {10, 8}, {11, 8},
    {12, 8}, {13, 8}, {14, 8}, {15, 6},  {16, 6}, {17, 4}, {0, 2},  {0, 4},  {1, 2},  {1, 4},
}};
static_assert(static_cast<int>(DType::kBFloat16) == 14 && static_cast<int>(DType::kUInt4) == kDTypeCount - 1);

[[noreturn]] void fail_buffer(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw py::error_already_set();
}

std::string type_of(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// --- Out
// ---------------------------------------------------------------------------------------------------------------

/// What a consumer keeps alive: the view keeps the memory, the strides are in elements.
struct Exported {
  std::shared_ptr<const HostView> view;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

// Needs no GIL: there is nothing of Python in it.
template <class T>
void delete_exported(T* managed) {
  delete static_cast<Exported*>(managed->context);
  delete managed;
}

// Of a capsule that was not taken.
template <class T>
void destroy_capsule(PyObject* capsule) {
  constexpr bool kVersioned = std::is_same_v<T, ManagedVersioned>;
  const char* name = kVersioned ? kVersionedName : kName;
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class T>
std::pair<std::unique_ptr<Exported>, std::unique_ptr<T>> pack(std::shared_ptr<const HostView> view) {
  auto exported = std::make_unique<Exported>();
  const int64_t size = itemsize(view->dtype);
  for (int64_t d = 0; d < view->shape.size(); ++d) {
    exported->shape.push_back(view->shape[d]);
    exported->strides.push_back(view->byte_strides[d] / size);
  }
  auto managed = std::make_unique<T>();
  const auto [code, bits] = kElements[static_cast<size_t>(view->dtype)];
  managed->tensor = {view->data,
                     {dlpack::kCpu, 0},
                     static_cast<int32_t>(exported->shape.size()),
                     {code, bits, 1},
                     exported->shape.data(),
                     exported->strides.data(),
                     0};
  exported->view = std::move(view);
  managed->context = exported.get();
  managed->deleter = &delete_exported<T>;
  return {std::move(exported), std::move(managed)};
}

template <class T>
py::capsule capsule_of(std::pair<std::unique_ptr<Exported>, std::unique_ptr<T>> packed, const char* name) {
  PyObject* capsule = PyCapsule_New(packed.second.get(), name, &destroy_capsule<T>);
  if (capsule == nullptr) throw py::error_already_set();
  packed.first.release();
  packed.second.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

void check_one_device(const Array& array, const char* operation) {
  array.check_alive(operation);
  const int64_t devices = array.sharding()->num_devices();
  if (devices == 1) return;
  fail_buffer(
      fmt::format("{}: the Array lies on {} devices; expected one; hand over its value, np.asarray(x), or a shard, "
                  "x.addressable_shards[0].data",
                  operation, devices));
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
    throw_error<TypeMismatch>("{}: {} is no pair of integers; expected a tuple such as {}, got {}", operation, what,
                              example, shown(object));
  }
  return {numbers[0], numbers[1]};
}

std::shared_ptr<const HostView> copied(const HostView& view, const Array& array) {
  auto copy = std::make_shared<HostView>(view);
  BlockRef block = (*array.sharding()->devices())[0]->arena().allocate(array.nbytes());
  copy->data = block->data();
  std::memcpy(copy->data, view.data, static_cast<size_t>(array.nbytes()));
  copy->owner = std::make_shared<BlockRef>(std::move(block));
  return copy;
}

std::shared_ptr<const HostView> exported_view(const ArrayRef& array, bool copy) {
  const ReleaseGil release;
  std::shared_ptr<const HostView> view = device_get(array);
  return copy ? copied(*view, *array) : view;
}

}  // namespace

py::capsule dlpack_of(const ArrayRef& array, py::handle stream, py::handle max_version, py::handle dl_device,
                      py::handle copy) {
  constexpr const char* kOperation = "__dlpack__";
  check_one_device(*array, kOperation);
  if (!stream.is_none()) {
    throw_error<Unavailable>("{}: stream is {}; expected None, as data on CPU has no stream; leave it out", kOperation,
                             shown(stream));
  }
  if (!dl_device.is_none()) {
    const auto [type, id] = int_pair(dl_device, kOperation, "dl_device", "(1, 0)");
    if (type != dlpack::kCpu || id < 0 || id >= array->sharding()->devices()->client()->device_count()) {
      fail_buffer(fmt::format(
          "{}: dl_device is ({}, {}); expected (1, 0), the host's memory; ask for that and let the consumer move it",
          kOperation, type, id));
    }
  }
  std::pair<int64_t, int64_t> version{0, 8};
  if (!max_version.is_none()) version = int_pair(max_version, kOperation, "max_version", "(1, 0)");
  const bool sub_byte = kElements[static_cast<size_t>(array->dtype())].second < 8;
  if (sub_byte && version < std::pair<int64_t, int64_t>{1, 1}) {
    fail_buffer(
        fmt::format("{}: dtype {} takes a byte an element, which DLPack can say from version 1.1 on; expected "
                    "max_version=(1, 1) or later, got ({}, {}); hand over the bytes: np.asarray(x).view(np.uint8)",
                    kOperation, name(array->dtype()), version.first, version.second));
  }
  if (!copy.is_none() && !PyBool_Check(copy.ptr())) {
    throw_error<TypeMismatch>("{}: copy is of type {}; expected None, True or False, got {}; leave it out", kOperation,
                              Py_TYPE(copy.ptr())->tp_name, shown(copy));
  }
  const bool copies = copy.ptr() == Py_True;
  auto view = exported_view(array, copies);
  if (version.first == 0) return capsule_of(pack<Managed>(std::move(view)), kName);
  auto packed = pack<ManagedVersioned>(std::move(view));
  packed.second->version = {1, sub_byte ? 1U : 0U};
  packed.second->flags = (copies ? dlpack::kIsCopied : dlpack::kReadOnly) | (sub_byte ? dlpack::kSubBytePadded : 0);
  return capsule_of(std::move(packed), kVersionedName);
}

py::tuple dlpack_device_of(const Array& array) {
  check_one_device(array, "__dlpack_device__");
  return py::make_tuple(dlpack::kCpu, 0);
}

// --- In
// ----------------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kImport = "from_dlpack";

DType dtype_of_element(const ElementType& element, uint64_t flags) {
  for (size_t i = 0; element.lanes == 1 && i < kElements.size(); ++i) {
    if (kElements[i] != std::pair{element.code, element.bits}) continue;
    if (element.bits >= 8 || (flags & dlpack::kSubBytePadded) != 0) return static_cast<DType>(i);
  }
  fail_buffer(
      fmt::format("{}: elements of type code {}, {} bits, {} lanes have no dtype here; expected a bool, integer, float "
                  "or complex dtype of NumPy or ml_dtypes; convert them at the producer",
                  kImport, element.code, element.bits, element.lanes));
}

// Checks all that can be checked without touching the memory.
HostView view_of_tensor(const Tensor& tensor, uint64_t flags) {
  const auto malformed = [](const std::string& what) {
    fail_buffer(fmt::format("{}: {}; the producer's capsule is malformed", kImport, what));
  };
  if (tensor.device.type != dlpack::kCpu && tensor.device.type != dlpack::kCudaHost &&
      tensor.device.type != dlpack::kRocmHost) {
    fail_buffer(fmt::format(
        "{}: the memory is of DLPack device type {}; expected 1, the host's; copy it to the host at the producer first",
        kImport, tensor.device.type));
  }
  HostView view;
  view.dtype = dtype_of_element(tensor.element, flags);
  constexpr int32_t kMostDimensions = 64;  // NumPy's
  if (tensor.rank < 0 || tensor.rank > kMostDimensions) {
    malformed(fmt::format("{} dimensions; expected 0 to {}", tensor.rank, kMostDimensions));
  }
  if (tensor.rank > 0 && tensor.shape == nullptr) malformed("no shape");
  const auto rank = static_cast<size_t>(tensor.rank);
  if (rank > 0) view.shape = Dims(std::span<const int64_t>(tensor.shape, rank));
  const int64_t size = itemsize(view.dtype);
  if (std::ranges::any_of(view.shape, [](int64_t extent) { return extent < 0; })) {
    malformed(fmt::format("shape {}", to_string(view.shape)));
  }
  const auto bytes = dense_bytes(view.shape, size);
  if (!bytes) malformed(fmt::format("shape {} has more bytes than fit 63 bits", to_string(view.shape)));
  const bool empty = *bytes == 0;
  view.byte_strides = row_major_strides(view.shape, size);
  if (tensor.strides != nullptr && !empty) {
    for (int64_t d = 0; d < view.shape.size(); ++d) {
      if (view.shape[d] == 1) continue;  // any number may stand there
      const auto stride = checked_mul(tensor.strides[d], size);
      if (!stride || !checked_mul(*stride, view.shape[d])) malformed(fmt::format("stride {}", tensor.strides[d]));
      view.byte_strides[d] = *stride;
    }
  }
  if (tensor.data == nullptr && !empty) malformed("no data");
  if (tensor.data != nullptr) view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  return view;
}

// Takes the capsule's tensor: from here on it is given back when the view's owner is dropped.
template <class T>
void take(const py::object& capsule, T* managed, const char* used_name, HostView* view) {
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  // Deleters of producers written in Python terms count on the GIL.
  view->owner = python_owner(managed, [](void* pointer) {
    auto* taken = static_cast<T*>(pointer);
    if (taken->deleter != nullptr) taken->deleter(taken);
  });
}

HostView view_of_capsule(const py::object& capsule) {
  if (!PyCapsule_CheckExact(capsule.ptr())) {
    throw_error<TypeMismatch>("{}: __dlpack__() gave a {}; expected a capsule; the object does not follow DLPack",
                              kImport, type_of(capsule));
  }
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName)) {
    auto* managed = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName));
    if (managed->version.major != 1) {
      fail_buffer(fmt::format("{}: the capsule is of DLPack {}.{}; expected version 1; use a matching producer",
                              kImport, managed->version.major, managed->version.minor));
    }
    HostView view = view_of_tensor(managed->tensor, managed->flags);
    take(capsule, managed, kUsedVersionedName, &view);
    return view;
  }
  if (PyCapsule_IsValid(capsule.ptr(), kName)) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    HostView view = view_of_tensor(managed->tensor, 0);
    take(capsule, managed, kUsedName, &view);
    return view;
  }
  const char* name = PyCapsule_GetName(capsule.ptr());
  if (name == nullptr) PyErr_Clear();
  fail_buffer(
      fmt::format("{}: the capsule is named {:?}; expected \"dltensor_versioned\" or \"dltensor\", each taken once; "
                  "ask the producer for a new one",
                  kImport, name == nullptr ? "" : name));
}

// Why the memory cannot be shown as it is; empty if it can.
std::string why_copy(const HostView& view, bool stays) {
  const int64_t size = itemsize(view.dtype);
  if (!stays) return "another device than cpu:0, where the memory lies, was asked for";
  if (view.byte_strides != row_major_strides(view.shape, size)) {
    return fmt::format("strides {} of shape {} are not row-major", to_string(view.byte_strides), to_string(view.shape));
  }
  const bool complex = view.dtype == DType::kComplex64 || view.dtype == DType::kComplex128;
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(complex ? size / 2 : size) != 0) {
    return "the address does not fit the dtype's alignment";
  }
  return "";
}

ArrayRef array_from_capsule(const py::object& capsule, const ShardingRef& sharding, py::handle copy) {
  if (sharding->num_devices() != 1) {
    throw_error(
        "{}: device is a sharding over {} devices; expected a Device or a sharding over one; shard it afterwards: "
        "device_put(from_dlpack(x), sharding)",
        kImport, sharding->num_devices());
  }
  const bool must_copy = !copy.is_none() && py::cast<bool>(copy);
  const bool never_copy = !copy.is_none() && !must_copy;
  HostView view = view_of_capsule(capsule);
  const Device* device = (*sharding->devices())[0];
  const std::string why = why_copy(view, device == device->client().default_device());
  if (never_copy && !why.empty()) {
    throw_error("{}: copy=False, but a copy is needed: {}; leave copy out, or give row-major memory and no device",
                kImport, why);
  }
  const ReleaseGil release;
  // Where it is copied, the view's owner is dropped in here: its release is queued until this thread has the GIL again.
  const HostView source = std::move(view);
  if (must_copy || !why.empty() || source.data == nullptr) return device_put(source, sharding, true);
  return device_put_alias(source, sharding, true);
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
              kImport, type_of(device), shown(device));
        }
        return array_from_capsule(capsule, sharding, copy);
      },
      py::arg("capsule"), py::arg("device"), py::arg("copy"));
}

}  // namespace artifex_devices::bindings
