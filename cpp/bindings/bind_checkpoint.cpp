// SPDX-License-Identifier: Apache-2.0
// Files of checkpoints, for artifex_devices.checkpoint.
#include "bind_checkpoint.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/read_boxes.h"
#include "artifex_devices/checkpoint/safetensors.h"
#include "artifex_devices/checkpoint/save_part.h"
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
  for (size_t i = 0; i < leaves.size(); ++i) {
    const py::handle leaf = leaves[i];
    if (py::isinstance<Array>(leaf)) {
      self.part.add(i, leaf.cast<ArrayRef>());
    } else if (with_ndarrays && py::hasattr(leaf, "dtype")) {
      Leaf host = leaf_from_python(leaf, operation);
      self.part.add(i, host.view);
      self.owners.push_back(std::move(host.keep));
      self.owners.push_back(py::reinterpret_borrow<py::object>(leaf));
    }
  }
}

// The tensors of some safetensors files, in their order.
struct __attribute__((visibility("hidden"))) StoredFiles {
  std::vector<std::string> paths;
  std::vector<StoredTensor> tensors = {};
  std::vector<size_t> file_of_tensor = {};
};

std::shared_ptr<StoredFiles> open_files(std::vector<std::string> paths, const std::string& operation) {
  const ReleaseGil release;
  auto files = std::make_shared<StoredFiles>(StoredFiles{std::move(paths)});
  for (size_t file = 0; file < files->paths.size(); ++file) {
    check_interrupt();
    for (StoredTensor& tensor : read_safetensors(files->paths[file], operation)) {
      files->tensors.push_back(std::move(tensor));
      files->file_of_tensor.push_back(file);
    }
  }
  return files;
}

py::list tensor_rows(const StoredFiles& self) {
  const auto dims = [](const std::optional<Dims>& value) -> py::object {
    if (!value) return py::none();
    return tuple_from_dims(*value);
  };
  py::list rows(self.tensors.size());
  for (size_t i = 0; i < self.tensors.size(); ++i) {
    const StoredTensor& tensor = self.tensors[i];
    const auto dtype = dtype_of_stored(tensor.type);
    rows[i] =
        py::make_tuple(tensor.name, tensor.type, dtype ? py::object(py::str(std::string(name(*dtype)))) : py::none(),
                       tuple_from_dims(tensor.shape), dims(tensor.origin), dims(tensor.global_shape),
                       self.file_of_tensor[i], tensor.end - tensor.begin);
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

ReadRequest request_from_python(const StoredFiles& files, py::handle row, const std::string& operation) {
  const auto [name, destination, numbers] = row.cast<std::tuple<std::string, py::object, std::vector<size_t>>>();
  ReadRequest request;
  request.name = name;
  if (py::isinstance<Array>(destination)) {
    const auto& array = destination.cast<const Array&>();
    request.dtype = array.dtype();
    request.shape = array.shape();
    request.destinations = boxes_of_array(array, hold_buffers(array, operation), operation);
  } else {
    const Leaf leaf = leaf_from_python(destination, operation);
    if (!leaf.view.writable) throw_error("{}: the ndarray for {} is read-only; expected a new one", operation, name);
    request.dtype = leaf.view.dtype;
    request.shape = leaf.view.shape;
    request.destinations.push_back({IndexDomain{Dims(request.shape.size(), 0), request.shape},
                                    static_cast<std::byte*>(leaf.view.data), leaf.view.byte_strides});
  }
  for (const size_t number : numbers) {
    request.stored.push_back({files.file_of_tensor.at(number), &files.tensors.at(number)});
  }
  return request;
}

// Adds part `index` of `count` of a stored array, which is read piece by piece while it is written.
void add_stored(HeldPart& self, size_t leaf, const std::shared_ptr<StoredFiles>& files, const std::string& name,
                py::handle dtype, py::handle shape, const std::vector<size_t>& numbers, int64_t index, int64_t count) {
  constexpr std::string_view kOperation = "checkpoint.convert";
  ReadRequest request;
  request.name = name;
  request.dtype = dtype_from_python(dtype, kOperation);
  request.shape = dims_from_python(shape, kOperation, "shape");
  for (const size_t number : numbers) {
    request.stored.push_back({files->file_of_tensor.at(number), &files->tensors.at(number)});
  }
  const IndexDomain whole{Dims(request.shape.size(), 0), request.shape};
  self.part.add(leaf, request.dtype, request.shape, part_of_box(whole, index, count),
                [files, request, kOperation](std::byte* data, const IndexDomain& piece) {
                  ReadRequest part = request;
                  part.destinations.push_back({piece, data, row_major_strides(piece.shape, itemsize(part.dtype))});
                  std::vector<ReadRequest> parts;
                  parts.push_back(std::move(part));
                  read_boxes(files->paths, std::move(parts), {kOperation, false});
                });
}

int64_t read_into(const StoredFiles& self, const py::list& rows, bool verify, const std::string& operation) {
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
  py::class_<StoredFiles, std::shared_ptr<StoredFiles>>(module, "_StoredFiles",
                                                        "The tensors of some safetensors files.")
      .def(py::init(&open_files), py::arg("paths"), py::arg("operation"))
      .def_property_readonly(
          "tensors", &tensor_rows,
          "For each tensor: name, stored type, dtype or None, shape, origin or None, global shape or "
          "None, number of its file, bytes.")
      .def(
          "read", &read_into, py::arg("requests"), py::arg("verify"), py::arg("operation"),
          "Fills Arrays of _checkpoint_array and ndarrays: (name, destination, numbers of its tensors) for each. Returns the "
          "number of bytes read.");
  module.def("_add_stored", &add_stored, py::arg("part"), py::arg("leaf"), py::arg("files"), py::arg("name"),
             py::arg("dtype"), py::arg("shape"), py::arg("numbers"), py::arg("index"), py::arg("count"),
             "Adds part `index` of `count` of a stored array to a _SavePart, which reads it while it writes.");
  module.def(
      "_dtype_from_name",
      [](const std::string& text) {
        const auto dtype = dtype_from_name(text);
        if (!dtype) throw_error("dtype: {} is not the name of a dtype; expected one such as float32", text);
        return numpy_dtype(*dtype);
      },
      py::arg("name"), "Returns the dtype whose `name` it is.");
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
