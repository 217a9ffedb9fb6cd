// SPDX-License-Identifier: Apache-2.0
// Files of checkpoints, for artifex_devices.checkpoint.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/folder_lock.h"
#include "artifex_devices/checkpoint/read_boxes.h"
#include "artifex_devices/checkpoint/save_part.h"
#include "artifex_devices/checkpoint/stored_checkpoint.h"
#include "artifex_devices/checkpoint/stored_files.h"
#include "artifex_devices/transfer/place.h"
#include "bindings.h"
#include "fast_path.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

// A part and the ndarrays that it reads.
struct __attribute__((visibility("hidden"))) HeldPart {
  SavePart part;
  std::vector<py::object> owners = {};
};

// Starts to load the memory that add_arrays will read for leaves after leaf `i`: the object, its Array, and its
// Storage. Each step reads memory that the previous step loaded some leaves ago.
void prefetch_leaves(const py::list& leaves, size_t i, PyTypeObject* array_type) {
  constexpr size_t kAhead = 8;
  const auto leaf = [&](size_t ahead) -> PyObject* {
    return i + ahead < leaves.size() ? PyList_GET_ITEM(leaves.ptr(), static_cast<Py_ssize_t>(i + ahead)) : nullptr;
  };
  const auto load = [](const void* memory, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(memory) + at, 1);
  };
  const auto array = [&](size_t ahead) -> const Array* {
    PyObject* const object = leaf(ahead);
    return object != nullptr && Py_TYPE(object) == array_type ? value_in<Array>(object) : nullptr;
  };
  if (PyObject* const object = leaf(3 * kAhead)) load(object, 64);
  if (const Array* const value = array(2 * kAhead)) load(value, sizeof(Array));
  if (const Array* const value = array(kAhead)) load(value->storage().get(), sizeof(Storage));
}

// Adds the Arrays of the leaves. Returns the client of the first Array that spans processes, and the positions of the
// leaves that are not Arrays. It prefetches, because the caller of save_async waits for it, and the memory of each
// Array is cold after another save.
py::tuple add_arrays(HeldPart& self, const py::list& leaves) {
  auto* const array_type = reinterpret_cast<PyTypeObject*>(py::type::of<Array>().ptr());
  py::object client = py::none();
  py::list others;
  self.part.reserve(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    prefetch_leaves(leaves, i, array_type);
    PyObject* const leaf = PyList_GET_ITEM(leaves.ptr(), static_cast<Py_ssize_t>(i));
    if (!PyObject_TypeCheck(leaf, array_type)) {
      others.append(i);
      continue;
    }
    auto* const value = value_in<Array>(leaf);
    ArrayRef array = value != nullptr ? value->shared_from_this() : py::handle(leaf).cast<ArrayRef>();
    const Sharding& sharding = *array->sharding();
    if (client.is_none() && !sharding.is_fully_addressable()) client = py::cast(sharding.devices()->client());
    self.part.add(i, std::move(array));
  }
  return py::make_tuple(std::move(client), std::move(others));
}

// Adds ndarrays and NumPy scalars, by their number in the leaves.
void add_ndarrays(HeldPart& self, const py::dict& ndarrays, const std::string& operation) {
  for (const auto& [number, ndarray] : ndarrays) {
    Leaf host = leaf_from_python(ndarray, operation);
    self.part.add(number.cast<size_t>(), host.view);
    self.owners.push_back(std::move(host.keep));
    self.owners.push_back(py::reinterpret_borrow<py::object>(ndarray));
  }
}

std::shared_ptr<StoredCheckpoint> open_stored(const std::string& path, const std::string& operation) {
  const ReleaseGil release;
  return std::make_shared<StoredCheckpoint>(StoredCheckpoint::open(path, operation));
}

// An instance of a subclass of NamedTuple; its own constructor is several times slower.
py::object named_tuple(const py::type& type, py::tuple fields) {
  const py::tuple arguments = py::make_tuple(std::move(fields));
  PyObject* made = PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(type.ptr()), arguments.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object dtype_or_none(const StoredArray& array) {
  return array.dtype ? numpy_dtype(*array.dtype) : py::object(py::none());
}

py::dict arrays_by_name(const StoredCheckpoint& self, const py::type& type) {
  py::dict rows;
  for (size_t i = 0; i < self.arrays.size(); ++i) {
    const StoredArray& array = self.arrays[i];
    rows[py::str(array.name)] =
        named_tuple(type, py::make_tuple(i, tuple_from_dims(array.shape), dtype_or_none(array), array.type));
  }
  return rows;
}

// A name in a folder may be any bytes.
py::str file_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
}

// The dimension of complex numbers is left out of the parts.
py::dict describe(const StoredCheckpoint& self, const py::type& array_type, const py::type& part_type) {
  std::vector<py::str> files;
  for (const std::string& path : self.files.paths()) files.push_back(file_name(path));
  py::dict rows;
  for (const StoredArray& array : self.arrays) {
    py::tuple parts(array.tensors.size());
    for (size_t k = 0; k < array.tensors.size(); ++k) {
      const StoredTensor& tensor = self.tensors[array.tensors[k]];
      const int64_t rank = std::min(tensor.shape.size(), array.shape.size());
      Dims origin(rank, 0);
      Dims shape(rank, 0);
      for (int64_t d = 0; d < rank; ++d) {
        origin[d] = tensor.origin ? (*tensor.origin)[d] : 0;
        shape[d] = tensor.shape[d];
      }
      parts[k] =
          named_tuple(part_type, py::make_tuple(files[self.file_of_tensor[array.tensors[k]]], tuple_from_dims(origin),
                                                tuple_from_dims(shape), tensor.end - tensor.begin));
    }
    rows[py::str(array.name)] =
        named_tuple(array_type, py::make_tuple(tuple_from_dims(array.shape), dtype_or_none(array), array.type,
                                               std::move(parts), array.is_shape_derived));
  }
  return rows;
}

ReadRequest request_from_python(const StoredCheckpoint& stored, py::handle row, const std::string& operation) {
  const auto [number, destination] = row.cast<std::pair<size_t, py::object>>();
  ReadRequest request = stored.request(number);
  if (py::isinstance<Array>(destination)) {
    const auto& array = destination.cast<const Array&>();
    request.dtype = array.dtype();
    request.shape = array.shape();
    request.destinations = boxes_of_array(array, hold_buffers(array, operation), operation);
  } else {
    const Leaf leaf = leaf_from_python(destination, operation);
    if (!leaf.view.writable) {
      throw_error("{}: the ndarray for {} is read-only; expected a new one", operation, request.name);
    }
    request.dtype = leaf.view.dtype;
    request.shape = leaf.view.shape;
    request.destinations.push_back({IndexDomain{Dims(request.shape.size(), 0), request.shape},
                                    static_cast<std::byte*>(leaf.view.data), leaf.view.byte_strides});
  }
  return request;
}

// Adds part `index` of `count` of each stored array, which is read piece by piece while it is written.
void add_stored(HeldPart& self, const std::shared_ptr<StoredCheckpoint>& stored, int64_t index, int64_t count) {
  constexpr std::string_view kOperation = "checkpoint.convert";
  for (size_t number = 0; number < stored->arrays.size(); ++number) {
    const ReadRequest request = stored->request(number);
    const IndexDomain whole{Dims(request.shape.size(), 0), request.shape};
    self.part.add(number, request.dtype, request.shape, part_of_box(whole, index, count),
                  [stored, request, kOperation](std::byte* data, const IndexDomain& piece) {
                    ReadRequest part = request;
                    part.destinations.push_back({piece, data, row_major_strides(piece.shape, itemsize(part.dtype))});
                    std::vector<ReadRequest> parts;
                    parts.push_back(std::move(part));
                    read_boxes(stored->files, std::move(parts), {kOperation, false});
                  });
  }
}

int64_t read_into(const StoredCheckpoint& self, const py::list& rows, bool verify, const std::string& operation) {
  std::vector<ReadRequest> requests;
  for (const py::handle row : rows) requests.push_back(request_from_python(self, row, operation));
  const ReleaseGil release;
  return read_boxes(self.files, std::move(requests), {operation, verify});
}

}  // namespace

void bind_checkpoint(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<HeldPart>(internal, "SavePart", "Part of a checkpoint that one process writes.")
      .def(py::init([](std::string operation) {
             return std::unique_ptr<HeldPart>(new HeldPart{SavePart(std::move(operation))});
           }),
           py::arg("operation"))
      .def("add_arrays", &add_arrays, py::arg("leaves"),
           R"(Adds the boxes that this process must write of the Arrays among the leaves.

Returns:
    (client of the first Array that spans processes, or None; positions of the leaves that are not Arrays).
)")
      .def("add_ndarrays", &add_ndarrays, py::arg("ndarrays"), py::arg("operation"),
           R"(Adds complete ndarrays and NumPy scalars: a dict by their position among the leaves.

The ndarrays must not change before write() has returned.
)")
      .def(
          "write",
          [](HeldPart& self, const std::string& folder, const std::vector<std::string>& names, int64_t process) {
            {
              const ReleaseGil release;
              self.part.write(folder, names, ProcessIndex(process));
            }
            self.owners.clear();
          },
          py::arg("folder"), py::arg("names"), py::arg("process"),
          "Writes the files of a process, with a name for each leaf, and waits until the data is on storage.")
      .def_property_readonly(
          "bytes", [](const HeldPart& self) { return self.part.bytes(); }, "Bytes of all boxes.")
      .def_property_readonly(
          "bytes_written", [](const HeldPart& self) { return self.part.bytes_written(); }, "Bytes written so far.");
  py::class_<StoredCheckpoint, std::shared_ptr<StoredCheckpoint>>(internal, "StoredCheckpoint",
                                                                  "The headers of all files of a checkpoint.")
      .def(py::init(&open_stored), py::arg("path"), py::arg("operation"),
           "Reads the headers of a folder, of one safetensors file, or of the files of an index.")
      .def("arrays", &arrays_by_name, py::arg("type"),
           "Returns a dict of name to `type`(number, shape, dtype or None, stored type), for each stored array.")
      .def("describe", &describe, py::arg("array_type"), py::arg("part_type"),
           R"(Returns a dict of name to `array_type`, for each stored array.

`array_type` is a NamedTuple class of (shape, dtype or None, stored type, parts, whether the shape is derived from the
parts); `part_type`, of its parts, is one of (file, origin, shape, bytes).
)")
      .def_property_readonly(
          "process_count",
          [](const StoredCheckpoint& self) -> py::object {
            if (!self.manifest) return py::none();
            return py::int_(self.manifest->process_count);
          },
          "Number of processes that saved it; None without checkpoint.json.")
      .def_property_readonly(
          "values", [](const StoredCheckpoint& self) { return self.manifest ? self.manifest->values : "{}"; },
          "JSON of the Python values.")
      .def_property_readonly(
          "paths", [](const StoredCheckpoint& self) { return self.manifest ? self.manifest->paths : "{}"; },
          "JSON of the paths of the leaves whose path is not just their name.")
      .def_property_readonly(
          "bytes_read", [](const StoredCheckpoint& self) { return self.files.bytes_read(); },
          "Bytes that were read into arrays so far.")
      .def("read", &read_into, py::arg("requests"), py::arg("verify"), py::arg("operation"),
           R"(Reads stored arrays into Arrays of empty() and ndarrays. Returns the number of bytes read.

`requests` has (number of the stored array, destination) for each.
)");
  internal.def("add_stored", &add_stored, py::arg("part"), py::arg("stored"), py::arg("index"), py::arg("count"),
               "Adds part `index` of `count` of each stored array to a SavePart, which reads it while it writes.");
  internal.def(
      "real_path",
      [](const std::string& path) -> py::object {
        const std::optional<std::string> resolved = real_path(path);
        if (!resolved) return py::none();
        return py::reinterpret_steal<py::object>(
            PyUnicode_DecodeFSDefaultAndSize(resolved->data(), static_cast<Py_ssize_t>(resolved->size())));
      },
      py::arg("path"), "Returns os.path.realpath of a path of which only the last name may be missing, else None.");
  internal.def("exchange_paths", &exchange_paths, py::call_guard<ReleaseGil>(), py::arg("a"), py::arg("b"),
               py::arg("operation"), "Exchanges two folders in one step. Returns False where the file system cannot.");
  py::class_<FolderLock>(internal, "FolderLock",
                         "The lock of one save on a folder, which keeps other saves out of it. Forked children do not "
                         "hold it.")
      .def(py::init<>())
      .def_property_readonly(
          "is_held",
          py::cpp_function([](const FolderLock& self) { return self.is_held(); }, py::call_guard<ReleaseGil>()),
          "Whether a folder is locked.")
      .def(
          "take", [](FolderLock& self, const std::string& folder) { return self.take(folder); },
          py::call_guard<ReleaseGil>(), py::arg("folder"),
          "Locks a folder; returns False if it does not exist. Raises BlockingIOError if another save has locked it.")
      .def(
          "is_at", [](const FolderLock& self, const std::string& path) { return self.is_at(path); },
          py::call_guard<ReleaseGil>(), py::arg("path"),
          "Returns whether the locked folder is still at a path; False without a lock.")
      .def(
          "release", [](FolderLock& self) { self.release(); }, py::call_guard<ReleaseGil>(),
          "Unlocks the folder, if it is locked.")
      .def_static(
          "is_taken_by_this_thread", &FolderLock::is_taken_by_this_thread, py::call_guard<ReleaseGil>(),
          py::arg("folder"),
          "Returns whether this thread has locked a folder: then a signal handler interrupted it, and runs this.");
}

}  // namespace artifex_devices::bindings
