// SPDX-License-Identifier: Apache-2.0
// Reshards between processes: the core plans, copies and packs; artifex_devices.distributed.exchange sends.
#include <pybind11/stl.h>

#include <cstring>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/cross_reshard.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/value_digest.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "placing.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

// (peer, bytes) of each message.
py::list messages(const std::vector<CrossReshard::Message>& messages) {
  py::list result;
  for (const CrossReshard::Message& message : messages) result.append(py::make_tuple(message.peer, message.bytes));
  return result;
}

void check_number(const std::vector<CrossReshard::Message>& messages, int64_t i, const char* operation) {
  if (i >= 0 && i < static_cast<int64_t>(messages.size())) return;
  throw_error<IndexOutOfRange>("{}: there is no message {}; expected 0 to {}", operation, i, messages.size() - 1);
}

// An ndarray on the memory itself, which it keeps alive; None where the bytes must be packed.
py::object bytes_in_place(BufferRef memory, int64_t bytes, bool writable) {
  if (!memory.block) return py::none();
  return ndarray_of_buffer(std::move(memory), Dims{bytes}, Dims{1}, DType::kUInt8, writable);
}

std::byte* packed_memory(py::handle buffer, int64_t bytes, const char* operation) {
  const HostView view = leaf_from_python(py::reinterpret_borrow<py::object>(buffer), operation).view;
  if (view.dtype == DType::kUInt8 && view.shape == Dims{bytes} && is_dense(view.shape, view.byte_strides, 1)) {
    return static_cast<std::byte*>(view.data);
  }
  throw_error("{}: the buffer does not fit; expected dense uint8 of shape {}, got {} of {}", operation,
              to_string(Dims{bytes}), name(view.dtype), to_string(view.shape));
}

void bind_class(py::module_& module) {
  py::class_<CrossReshard, std::shared_ptr<CrossReshard>>(module, "_CrossReshard",
                                                          "This process's part of a reshard between processes.")
      .def(py::init([](const ArrayRef& source, const std::shared_ptr<Sharding>& sharding) {
             return std::make_shared<CrossReshard>(source, sharding, ReshardOptions{});
           }),
           py::arg("source"), py::arg("sharding"))
      .def_property_readonly("client", &CrossReshard::client, "Client of both shardings.")
      .def_property_readonly("processes", &CrossReshard::processes,
                             "Ranks of the processes that send or receive, ascending (list of int).")
      .def_property_readonly("text", &CrossReshard::text, "Description of the reshard, for messages.")
      .def_property_readonly("identity", &CrossReshard::identity, "Text that is equal in processes with the same plan.")
      .def_property_readonly(
          "sends", [](const CrossReshard& self) { return messages(self.sends()); },
          "(peer, bytes) of each message to send, in the order of all processes.")
      .def_property_readonly(
          "receives", [](const CrossReshard& self) { return messages(self.receives()); },
          "(peer, bytes) of each message to receive, in the order of all processes.")
      .def_property_readonly(
          "planned_bytes", [](const CrossReshard& self) { return self.plan().bytes_over(LinkKind::kOtherProcess); },
          "Number of bytes of all messages of all processes.")
      .def(
          "begin",
          [](CrossReshard& self) {
            const ReleaseGil release;
            self.begin();
          },
          "Allocates memory and starts the copies within the process.")
      .def(
          "send_in_place",
          [](const CrossReshard& self, int64_t i) {
            check_number(self.sends(), i, "send_in_place");
            return bytes_in_place(self.send_in_place(i), self.sends()[static_cast<size_t>(i)].bytes, false);
          },
          py::arg("i"), "Returns the bytes to send in the source's own memory, or None where they must be packed.")
      .def(
          "receive_in_place",
          [](const CrossReshard& self, int64_t i) {
            check_number(self.receives(), i, "receive_in_place");
            return bytes_in_place(self.receive_in_place(i), self.receives()[static_cast<size_t>(i)].bytes, true);
          },
          py::arg("i"), "Returns the memory of the result to receive into, or None where the bytes must be unpacked.")
      .def(
          "pack",
          [](const CrossReshard& self, int64_t i, py::handle buffer) {
            check_number(self.sends(), i, "pack");
            std::byte* memory = packed_memory(buffer, self.sends()[static_cast<size_t>(i)].bytes, "pack");
            const ReleaseGil release;
            self.pack(i, memory);
          },
          py::arg("i"), py::arg("buffer"), "Writes the bytes to send to a dense uint8 ndarray.")
      .def(
          "unpack",
          [](const CrossReshard& self, int64_t i, py::handle buffer) {
            check_number(self.receives(), i, "unpack");
            const std::byte* memory = packed_memory(buffer, self.receives()[static_cast<size_t>(i)].bytes, "unpack");
            const ReleaseGil release;
            self.unpack(i, memory);
          },
          py::arg("i"), py::arg("buffer"), "Copies received bytes into the result.")
      .def(
          "finish",
          [](CrossReshard& self) {
            const ReleaseGil release;
            return self.finish();
          },
          "Returns the Array once all messages have arrived.");
}

py::bytes digest_text(const std::array<uint64_t, 2>& digest) {
  std::array<char, sizeof(digest)> text{};
  std::memcpy(text.data(), digest.data(), sizeof(digest));
  return {text.data(), text.size()};
}

bool compares_values(const Sharding& sharding) {
  // As in JAX, a process without a device of the sharding may pass another value, or not call at all.
  const DeviceList& devices = *sharding.devices();
  if (static_cast<int>(devices.processes().size()) != devices.client()->process_count()) return false;
  return py::module_::import(python_modules::kConfig).attr("config").attr("distributed_checks").cast<bool>();
}

std::string comparison_text(const Sharding& sharding, const std::string& what) {
  return fmt::format("device_put of {} to {}", what, sharding.to_string());
}

}  // namespace

ArrayRef reshard_anywhere(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options) {
  if (source->sharding()->is_fully_addressable() && sharding->is_fully_addressable()) {
    const ReleaseGil release;
    return reshard(source, sharding, options);
  }
  std::shared_ptr<CrossReshard> cross;
  {
    const ReleaseGil release;
    cross = std::make_shared<CrossReshard>(source, sharding, options);
    if (!cross->has_messages()) {
      cross->begin();
      return cross->finish();
    }
  }
  return call_python(python_modules::kExchange, "run", py::cast(cross)).cast<ArrayRef>();
}

void check_same_everywhere(const HostView& value, const Sharding& sharding, const std::string& what) {
  if (!compares_values(sharding)) return;
  std::array<uint64_t, 2> digest{};
  {
    const ReleaseGil release;
    digest = digest_of_value(value);
  }
  const py::str compared = comparison_text(sharding, what);
  call_python(python_modules::kExchange, "check_same_value", py::cast(sharding.devices()->client()), compared,
              digest_text(digest));
}

void refuse_same_everywhere(const Sharding& sharding, const std::string& what, const std::string& reason) {
  if (!compares_values(sharding)) return;
  const py::str compared = comparison_text(sharding, what);
  call_python(python_modules::kExchange, "refuse_same_value", py::cast(sharding.devices()->client()), compared,
              py::str(reason));
}

void bind_cross_reshard(py::module_& module) {
  bind_class(module);
  module.def(
      "_value_digest",
      [](const py::object& array) {
        const HostView view = leaf_from_python(array, "value_digest").view;
        std::array<uint64_t, 2> digest{};
        run_with_gil_if(copies_with_gil(view.nbytes()), [&] { digest = digest_of_value(view); });
        return digest_text(digest);
      },
      py::arg("array"), "Returns 16 bytes that are equal for ndarrays of equal shape, dtype and bits.");
}

}  // namespace artifex_devices::bindings
