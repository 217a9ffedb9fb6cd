// SPDX-License-Identifier: Apache-2.0
// Files of checkpoints, for artifex_devices.checkpoint.
#include "bind_checkpoint.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/read_boxes.h"
#include "artifex_devices/checkpoint/save_part.h"
#include "artifex_devices/checkpoint/stored_checkpoint.h"
#include "artifex_devices/transfer/place.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "placing.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

namespace {

// A part and the ndarrays that it reads.
struct __attribute__((visibility("hidden"))) HeldPart {
  SavePart part;
  std::vector<py::object> owners = {};
};

// Adds the Arrays of the leaves and, in process 0, the ndarrays and NumPy scalars.
void add_leaves(HeldPart& self, const py::list& leaves, bool with_ndarrays, const std::string& operation) {
  self.part.reserve(leaves.size());
  py::detail::make_caster<ArrayRef> array;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const py::handle leaf = leaves[i];
    if (array.load(leaf, false)) {
      self.part.add(i, py::detail::cast_op<ArrayRef>(array));
    } else if (with_ndarrays && py::hasattr(leaf, "dtype")) {
      Leaf host = leaf_from_python(leaf, operation);
      self.part.add(i, host.view);
      self.owners.push_back(std::move(host.keep));
      self.owners.push_back(py::reinterpret_borrow<py::object>(leaf));
    }
  }
}

// The client of the first Array that spans processes; None without one.
py::object spanning_client(const py::list& leaves) {
  py::detail::make_caster<Array> array;
  for (const py::handle leaf : leaves) {
    if (!array.load(leaf, false)) continue;
    const Sharding& sharding = *py::detail::cast_op<Array&>(array).sharding();
    if (!sharding.is_fully_addressable()) return py::cast(sharding.devices()->client());
  }
  return py::none();
}

std::shared_ptr<StoredCheckpoint> open_stored(std::vector<std::string> paths, const std::string& manifest,
                                              const std::string& operation) {
  const ReleaseGil release;
  return std::make_shared<StoredCheckpoint>(StoredCheckpoint::open(std::move(paths), manifest, operation));
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
    rows[py::str(array.name)] = named_tuple(
        type, py::make_tuple(i, tuple_from_dims(array.shape), dtype_or_none(array), array.type, self.bytes(i)));
  }
  return rows;
}

// The dimension of complex numbers is left out of the parts.
py::dict describe(const StoredCheckpoint& self, const py::type& array_type, const py::type& part_type) {
  std::vector<py::str> files;
  for (const std::string& path : self.paths) files.emplace_back(path.substr(path.rfind('/') + 1));
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
    rows[py::str(array.name)] = named_tuple(
        array_type, py::make_tuple(tuple_from_dims(array.shape), dtype_or_none(array), array.type, std::move(parts)));
  }
  return rows;
}

ArrayRef empty_array(py::handle shape, py::handle dtype, const std::shared_ptr<Sharding>& sharding,
                     const std::string& operation) {
  check_placeable(*sharding, operation);
  const Dims dims = dims_from_python(shape, operation, "shape");
  const DType element = dtype_from_python(dtype, operation);
  auto storage = Storage::allocate(sharding, sharding->domains(dims, operation), element, operation);
  after_placing(*sharding);
  return Array::make(dims, element, sharding, std::move(storage), nullptr, true);
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
                    read_boxes(stored->paths, std::move(parts), {kOperation, false});
                  });
  }
}

int64_t read_into(const StoredCheckpoint& self, const py::list& rows, bool verify, const std::string& operation) {
  std::vector<ReadRequest> requests;
  for (const py::handle row : rows) requests.push_back(request_from_python(self, row, operation));
  const ReleaseGil release;
  return read_boxes(self.paths, std::move(requests), {operation, verify});
}

}  // namespace

void bind_checkpoint(py::module_& module) {
  py::class_<HeldPart>(module, "_SavePart", "What one process writes of a checkpoint.")
      .def(py::init([](int64_t process, std::string operation) {
             return std::unique_ptr<HeldPart>(new HeldPart{SavePart(process, std::move(operation))});
           }),
           py::arg("process"), py::arg("operation"))
      .def(
          "add", &add_leaves, py::arg("leaves"), py::arg("with_ndarrays"), py::arg("operation"),
          "Takes the boxes of Arrays that the process owns and all of ndarrays, which must not change. Other leaves are "
          "left out.")
      .def(
          "write",
          [](HeldPart& self, const std::string& folder, const std::vector<std::string>& names) {
            {
              const ReleaseGil release;
              self.part.write(folder, names);
            }
            self.owners.clear();
          },
          py::arg("folder"), py::arg("names"),
          "Writes the files of the process, with a name for each leaf, and waits for the storage.")
      .def_property_readonly(
          "bytes", [](const HeldPart& self) { return self.part.bytes(); }, "Bytes of all boxes.")
      .def_property_readonly(
          "bytes_written", [](const HeldPart& self) { return self.part.bytes_written(); }, "Bytes written so far.");
  py::class_<StoredCheckpoint, std::shared_ptr<StoredCheckpoint>>(module, "_StoredCheckpoint",
                                                                  "The headers of all files of a checkpoint.")
      .def(py::init(&open_stored), py::arg("paths"), py::arg("manifest"), py::arg("operation"),
           "Reads the headers of safetensors files, and checkpoint.json unless its path is empty.")
      .def("arrays", &arrays_by_name, py::arg("type"),
           "By name, an instance of a NamedTuple of number, shape, dtype or None, stored type and bytes.")
      .def(
          "describe", &describe, py::arg("array_type"), py::arg("part_type"),
          "By name, an instance of a NamedTuple of shape, dtype or None, stored type and parts, which are instances of "
          "one of file, origin, shape and bytes.")
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
      .def(
          "read", &read_into, py::arg("requests"), py::arg("verify"), py::arg("operation"),
          "Fills Arrays of _checkpoint_array and ndarrays: (number of the stored array, destination) for each. Returns "
          "the number of bytes read.");
  module.def("_add_stored", &add_stored, py::arg("part"), py::arg("stored"), py::arg("index"), py::arg("count"),
             "Adds part `index` of `count` of each stored array to a _SavePart, which reads it while it writes.");
  module.def("_spanning_client", &spanning_client, py::arg("leaves"),
             "Returns the client of the first Array that spans processes; None without one.");
  module.def("_checkpoint_array", &empty_array, py::arg("shape"), py::arg("dtype"), py::arg("sharding"),
             py::arg("operation"), "Returns an Array whose memory _StoredFiles.read writes.");
  module.def(
      "_exchange_paths",
      [](const std::string& a, const std::string& b, const std::string& operation) {
        const ReleaseGil release;
        return exchange_paths(a, b, operation);
      },
      py::arg("a"), py::arg("b"), py::arg("operation"),
      "Exchanges two folders in one step. Returns False where the file system cannot.");
}

}  // namespace artifex_devices::bindings
