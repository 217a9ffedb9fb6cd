// SPDX-License-Identifier: Apache-2.0
// Reshards between processes: the core plans, copies and packs; artifex_devices.distributed.exchange sends.
#include "bind_cross_reshard.h"

#include <pybind11/stl.h>

#include <cstring>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/cross_reshard.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/value_digest.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
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

// The memory itself, which the ndarray keeps alive; None where it must be packed.
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
      .def_property_readonly("client", &CrossReshard::client, "The world that it is of.")
      .def_property_readonly("processes", &CrossReshard::processes,
                             "Those that send or receive anything, ascending (list of int).")
      .def_property_readonly("text", &CrossReshard::text, "What it does, for messages.")
      .def_property_readonly("identity", &CrossReshard::identity, "Equal in processes that plan the same.")
      .def_property_readonly(
          "sends", [](const CrossReshard& self) { return messages(self.sends()); },
          "(peer, bytes) of each message to send, in the order of all processes.")
      .def_property_readonly(
          "receives", [](const CrossReshard& self) { return messages(self.receives()); },
          "(peer, bytes) of each message to receive, in the order of all processes.")
      .def_property_readonly(
          "planned_bytes", [](const CrossReshard& self) { return self.plan().bytes_over(LinkKind::kOtherProcess); },
          "Bytes of all messages of all processes.")
      .def(
          "begin",
          [](CrossReshard& self) {
            const ReleaseGil release;
            self.begin();
          },
          "Takes memory and begins the copies within the process.")
      .def(
          "send_in_place",
          [](const CrossReshard& self, int64_t i) {
            check_number(self.sends(), i, "send_in_place");
            return bytes_in_place(self.send_in_place(i), self.sends()[static_cast<size_t>(i)].bytes, false);
          },
          py::arg("i"), "The bytes to send as they lie in the source, or None: pack them.")
      .def(
          "receive_in_place",
          [](const CrossReshard& self, int64_t i) {
            check_number(self.receives(), i, "receive_in_place");
            return bytes_in_place(self.receive_in_place(i), self.receives()[static_cast<size_t>(i)].bytes, true);
          },
          py::arg("i"), "Where to receive in the result, or None: unpack them.")
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
          py::arg("i"), py::arg("buffer"), "Puts received bytes where they belong.")
      .def(
          "finish",
          [](CrossReshard& self) {
            const ReleaseGil release;
            return self.finish();
          },
          "The Array, once all messages have come.");
}

}  // namespace

ArrayRef moved(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options) {
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
  const py::module_ exchange = py::module_::import(python_modules::kExchange);
  return exchange.attr("run")(cross).cast<ArrayRef>();
}

void check_same_everywhere(const HostView& value, const Sharding& sharding, const std::string& what) {
  const ClientRef& client = sharding.devices()->client();
  // As in JAX: a process without a device of the sharding may well come with another value, or not at all.
  if (static_cast<int>(sharding.devices()->processes().size()) != client->process_count()) return;
  if (!py::module_::import(python_modules::kConfig).attr("config").attr("distributed_checks").cast<bool>()) return;
  std::array<uint64_t, 2> digest{};
  {
    const ReleaseGil release;
    digest = digest_of_value(value);
  }
  std::array<char, sizeof(digest)> text{};
  std::memcpy(text.data(), digest.data(), sizeof(digest));
  py::module_::import(python_modules::kExchange)
      .attr("check_same_value")(client, fmt::format("device_put of {} to {}", what, sharding.to_string()),
                                py::bytes(text.data(), text.size()));
}

void bind_cross_reshard(py::module_& module) { bind_class(module); }

}  // namespace artifex_devices::bindings
