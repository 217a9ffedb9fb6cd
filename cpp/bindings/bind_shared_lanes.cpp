// SPDX-License-Identifier: Apache-2.0
// Memory between the processes of one host, for artifex_devices.distributed and collectives.
#include <pybind11/stl.h>

#include <chrono>
#include <memory>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/collective/chain.h"
#include "artifex_devices/collective/shared_lanes.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"

namespace artifex_devices::bindings {
namespace {

using ProcessIds = std::vector<int64_t>;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

bool wait(SharedLanes& lanes, const ProcessIds& from, double seconds) {
  if (lanes.wait(from, std::chrono::nanoseconds(0))) return true;
  if (seconds <= 0) return false;
  const ReleaseGil release;
  return lanes.wait(from, nanoseconds(seconds));
}

py::list take(SharedLanes& lanes, const ProcessIds& from) {
  py::list messages;
  for (const int64_t sender : from) messages.append(py::bytes(lanes.take(sender)));
  return messages;
}

// A chain and the ndarrays that it reads and writes.
struct __attribute__((visibility("hidden"))) HeldChain {
  std::vector<py::object> owners;
  ReductionChain chain;
};

std::unique_ptr<HeldChain> make_chain(const std::shared_ptr<SharedLanes>& lanes, int64_t before, int64_t after,
                                      const std::string& kind, const py::list& blocks, const py::object& out,
                                      int64_t begin, int64_t handed_on) {
  std::vector<py::object> owners{py::cast(lanes), out};
  std::vector<HostView> views;
  for (const py::handle block : blocks) {
    owners.push_back(py::reinterpret_borrow<py::object>(block));
    views.push_back(leaf_from_python(block, "chain").view);
  }
  HostView target = leaf_from_python(out, "chain").view;
  if (!target.writable) throw_error("chain: out is read-only; expected writable memory; allocate it by _host_empty");
  return std::make_unique<HeldChain>(
      HeldChain{std::move(owners), ReductionChain(*lanes, before, after, reduction_from_name(kind), std::move(views),
                                                  std::move(target), {begin, handed_on})});
}

}  // namespace

void bind_shared_lanes(py::module_& module) {
  module.def("_create_lanes", &SharedLanes::create, py::arg("count"),
             "Creates a memory file for the messages of one of `count` processes of a host. Returns its descriptor, "
             "which the caller must close.");
  py::class_<HeldChain>(module, "_Chain", "This process's part of a reduction over the processes of one host.")
      .def(
          "advance",
          [](HeldChain& self, double seconds) {
            const ReleaseGil release;
            return self.chain.advance(nanoseconds(seconds));
          },
          py::arg("seconds"),
          "Continues, waiting at most `seconds` for other processes. Returns whether everything is done.")
      .def_property_readonly(
          "progress", [](const HeldChain& self) { return self.chain.progress(); },
          "Number of pieces combined or received so far.");
  py::class_<SharedLanes, std::shared_ptr<SharedLanes>>(module, "_SharedLanes",
                                                        "Messages and streams between the processes of one host.")
      .def(py::init([](int64_t me, const std::vector<int>& files) { return std::make_shared<SharedLanes>(me, files); }),
           py::arg("me"), py::arg("files"))
      .def_readonly_static("most_letter_bytes", &SharedLanes::kMaxMessageBytes,
                           "Maximum number of bytes of one message.")
      .def(
          "post",
          [](SharedLanes& self, const ProcessIds& to, const py::bytes& message) {
            self.post(to, std::string_view(message));
          },
          py::arg("receivers"), py::arg("message"), "Sends a message to each receiver. Never waits.")
      .def(
          "skip", [](SharedLanes& self, const ProcessIds& from) { self.skip(from); }, py::arg("senders"),
          "Discards the next message of each sender.")
      .def("wait", &wait, py::arg("senders"), py::arg("seconds"),
           "Waits at most `seconds`. Returns whether a message of each sender has arrived.")
      .def("take", &take, py::arg("senders"),
           "Returns the oldest message of each sender (bytes), which must have arrived.")
      .def("chain", &make_chain, py::arg("before"), py::arg("after"), py::arg("kind"), py::arg("blocks"),
           py::arg("out"), py::arg("begin"), py::arg("handed_on"),
           "Creates this process's part of a reduction of flat blocks. before, after: its peers in the chain, or -1. "
           "out: its share of the result, from element `begin` on. handed_on: end of the elements that processes "
           "before it need.");
}

}  // namespace artifex_devices::bindings
