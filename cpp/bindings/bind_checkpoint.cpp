// SPDX-License-Identifier: Apache-2.0
// Files of checkpoints, for artifex_devices.checkpoint.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/crc32c.h"
#include "artifex_devices/checkpoint/folder_lock.h"
#include "artifex_devices/checkpoint/located_parts.h"
#include "artifex_devices/checkpoint/read_boxes.h"
#include "artifex_devices/checkpoint/save_part.h"
#include "artifex_devices/checkpoint/stored_checkpoint.h"
#include "artifex_devices/checkpoint/stored_files.h"
#include "artifex_devices/checkpoint/streamed_boxes.h"
#include "artifex_devices/checkpoint/streamed_file.h"
#include "artifex_devices/transfer/place.h"
#include "bindings.h"
#include "fast_path.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

using Verify = ReadOptions::Verify;

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
        named_tuple(type, py::make_tuple(tuple_from_dims(array.shape), dtype_or_none(array), array.type, i));
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

py::tuple tuple_from_box(const IndexDomain& box) {
  return py::make_tuple(tuple_from_dims(box.origin), tuple_from_dims(box.shape));
}

StreamedBoxes streamed_boxes(const py::list& rows, const std::string& operation) {
  std::vector<StreamedBoxes::Tensor> tensors;
  for (const py::handle row : rows) {
    const auto [name, dtype, shape, origin, box_shape] =
        row.cast<std::tuple<std::string, py::object, py::object, py::object, py::object>>();
    tensors.push_back(
        {name,
         dtype_from_python(dtype, operation),
         dims_from_python(shape, operation, "shape"),
         {dims_from_python(origin, operation, "origin"), dims_from_python(box_shape, operation, "shape")}});
  }
  return StreamedBoxes(std::move(tensors));
}

int64_t read_into(const StoredCheckpoint& self, const py::list& rows, bool verify, const std::string& operation) {
  std::vector<ReadRequest> requests;
  for (const py::handle row : rows) requests.push_back(request_from_python(self, row, operation));
  const ReleaseGil release;
  return read_boxes(self.files, std::move(requests), {operation, verify ? Verify::kPieces : Verify::kNone});
}

// Reads the box of array `number` that begins at `origin` and has the shape of `destination`, a writable ndarray.
int64_t read_box(const StoredCheckpoint& self, size_t number, const py::object& destination, const py::object& origin,
                 bool verify, const std::string& operation) {
  ReadRequest request = self.request(number);
  const Leaf leaf = leaf_from_python(destination, operation);
  const Dims begin = dims_from_python(origin, operation, "origin");
  bool fits = begin.size() == request.shape.size() && leaf.view.shape.size() == request.shape.size();
  for (int64_t d = 0; fits && d < begin.size(); ++d) {
    fits = begin[d] >= 0 && begin[d] <= request.shape[d] - leaf.view.shape[d];
  }
  if (!fits || !leaf.view.writable) {
    throw_error("{}: the box of {} is not in its shape {}, or the ndarray is read-only", operation, request.name,
                to_string(request.shape));
  }
  request.dtype = leaf.view.dtype;
  request.destinations.push_back(
      {IndexDomain{begin, leaf.view.shape}, static_cast<std::byte*>(leaf.view.data), leaf.view.byte_strides});
  const ReleaseGil release;
  std::vector<ReadRequest> requests;
  requests.push_back(std::move(request));
  return read_boxes(self.files, std::move(requests), {operation, verify ? Verify::kPieces : Verify::kContained});
}

// The checkpoint of parts in files of another format: rows (name, dtype, shape, origin, shape of the box, file, begin).
std::shared_ptr<StoredCheckpoint> stored_of_parts(std::vector<std::string> paths, const py::list& rows,
                                                  const std::string& operation) {
  std::vector<LocatedPart> parts;
  for (const py::handle row : rows) {
    const auto [name, dtype, shape, origin, box_shape, file, begin] =
        row.cast<std::tuple<std::string, py::object, py::object, py::object, py::object, size_t, int64_t>>();
    parts.push_back({name,
                     dtype_from_python(dtype, operation),
                     dims_from_python(shape, operation, "shape"),
                     {dims_from_python(origin, operation, "origin"), dims_from_python(box_shape, operation, "shape")},
                     file,
                     begin});
  }
  const ReleaseGil release;
  return std::make_shared<StoredCheckpoint>(checkpoint_of_parts(std::move(paths), parts, operation));
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
           "Returns a dict of name to `type`(shape, dtype or None, stored type, number), for each stored array.")
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
      .def_static("of_parts", &stored_of_parts, py::arg("paths"), py::arg("parts"), py::arg("operation"),
                  R"(Returns the checkpoint of row-major parts in files of another format, after checks of their places.

A part is (name, dtype, shape of the array, origin of the box, shape of the box, number of the file, first byte).
)")
      .def_property_readonly(
          "states_boxes",
          [](const StoredCheckpoint& self) {
            return std::ranges::any_of(self.tensors,
                                       [](const StoredTensor& tensor) { return tensor.origin.has_value(); });
          },
          "Whether a file states which box of an array a tensor is.")
      .def_property_readonly(
          "derived_shapes",
          [](const StoredCheckpoint& self) {
            std::vector<std::string> names;
            for (const StoredArray& array : self.arrays) {
              if (array.is_shape_derived) names.push_back(array.name);
            }
            return names;
          },
          "Names of the arrays whose shape no file states.")
      .def_property_readonly(
          "without_checksums",
          [](const StoredCheckpoint& self) {
            std::set<std::string> names;
            for (const StoredTensor& tensor : self.tensors) {
              if (tensor.checksums.empty() && tensor.end > tensor.begin) names.insert(tensor.name);
            }
            return std::vector<std::string>(names.begin(), names.end());
          },
          "Names of the arrays with elements that have no checksum.")
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
)")
      .def("read_box", &read_box, py::arg("number"), py::arg("destination"), py::arg("origin"), py::arg("verify"),
           py::arg("operation"),
           R"(Reads a box of a stored array into an ndarray of the shape of the box. Returns the number of bytes read.

`origin` is the index in the array of the first element of the box. Checksums of the pieces that a contiguous box
contains are compared; with `verify`, all pieces that the box touches are read completely and compared.
)");
  internal.def(
      "crc32c",
      [](const py::buffer& data, uint32_t before) {
        const py::buffer_info info = data.request();
        const ReleaseGil release;
        return crc32c(info.ptr, static_cast<size_t>(info.size * info.itemsize), before);
      },
      py::arg("data"), py::arg("before"), "Returns the CRC-32C of contiguous bytes; `before` is of the bytes before.");
  py::class_<StreamedFile>(internal, "StreamedFile",
                           "A new file that is written from its beginning to its end, with checksums.")
      .def(py::init<const std::string&, const std::string&, int64_t>(), py::arg("path"), py::arg("operation"),
           py::arg("head_bytes"))
      .def(
          "write",
          [](StreamedFile& self, const py::buffer& data) {
            const py::buffer_info info = data.request();
            const ReleaseGil release;
            self.write(static_cast<const std::byte*>(info.ptr), info.size * info.itemsize);
          },
          py::arg("data"), "Appends bytes behind the head.")
      .def(
          "finish",
          [](StreamedFile& self, const std::string& head) {
            const ReleaseGil release;
            self.finish(head);
          },
          py::arg("head"), "Writes the first bytes, and waits until everything is on storage.")
      .def_property_readonly("bytes", &StreamedFile::bytes, "Bytes so far, with the head.")
      .def_property_readonly("checksum", &StreamedFile::checksum, "CRC-32C of the bytes behind the head.");
  internal.def(
      "safetensors_type",
      [](const py::object& dtype) { return row_of(dtype_from_python(dtype, "checkpoint.convert")).safetensors; },
      py::arg("dtype"), "Returns the type of a dtype in safetensors files; an empty text if the format lacks it.");
  internal.def(
      "owned_boxes",
      [](const ShardingRef& sharding, const py::object& shape, int64_t process) {
        py::list boxes;
        const Dims dims = dims_from_python(shape, "checkpoint.convert", "shape");
        for (const IndexDomain& box : owned_boxes(*sharding, dims, ProcessIndex(process))) {
          boxes.append(tuple_from_box(box));
        }
        return boxes;
      },
      py::arg("sharding"), py::arg("shape"), py::arg("process"),
      "Returns (origin, shape) of the boxes of an array that a process saves.");
  internal.def(
      "part_of_box",
      [](const py::object& shape, int64_t index, int64_t count) -> py::object {
        const Dims dims = dims_from_python(shape, "checkpoint.convert", "shape");
        const auto box = part_of_box({Dims(dims.size(), 0), dims}, index, count);
        return box ? py::object(tuple_from_box(*box)) : py::object(py::none());
      },
      py::arg("shape"), py::arg("index"), py::arg("count"),
      "Returns (origin, shape) of part `index` of `count` of an array, or None for a part without elements.");
  py::class_<StreamedBoxes>(internal, "StreamedBoxes",
                            "A file of a checkpoint whose boxes are written one after another, behind their header.")
      .def(py::init(&streamed_boxes), py::arg("boxes"), py::arg("operation"),
           "Takes rows (name, dtype, shape of the array, origin of the box, shape of the box).")
      .def(
          "add",
          [](StreamedBoxes& self, const py::buffer& data) {
            const py::buffer_info info = data.request();
            const ReleaseGil release;
            self.add(static_cast<const std::byte*>(info.ptr), info.size * info.itemsize);
          },
          py::arg("data"), "Computes checksums of the next bytes of the boxes.")
      .def(
          "header", [](const StreamedBoxes& self) { return py::bytes(self.header()); },
          "Returns the first bytes of the file; their number does not depend on the checksums.");
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
