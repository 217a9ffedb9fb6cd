// SPDX-License-Identifier: Apache-2.0
// Memory between the processes of one host, and reductions over chains of processes, for artifex_devices.distributed
// and collectives.
#include <pybind11/stl.h>

#include <array>
#include <chrono>
#include <memory>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/collective/chain.h"
#include "artifex_devices/collective/message_chain.h"
#include "artifex_devices/collective/shared_channels.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "numpy_bridge.h"

namespace artifex_devices::bindings {
namespace {

using ProcessIds = std::vector<int64_t>;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

bool wait(SharedChannels& channels, const ProcessIds& from, double seconds) {
  if (channels.wait(from, std::chrono::nanoseconds(0))) return true;
  if (seconds <= 0) return false;
  const ReleaseGil release;
  return channels.wait(from, nanoseconds(seconds));
}

py::list take(SharedChannels& channels, const ProcessIds& from) {
  return make_list(from, [&](const int64_t sender) { return py::bytes(channels.take(sender)); });
}

// A chain and the objects whose memory it reads and writes.
struct __attribute__((visibility("hidden"))) HeldChain {
  py::object owners;
  ReductionChain chain;
};

struct __attribute__((visibility("hidden"))) HeldMessageChain {
  py::object owners;
  MessageChain chain;
};

std::vector<HostView> views_of(const py::list& blocks) {
  std::vector<HostView> views;
  for (const py::handle block : blocks) views.push_back(leaf_from_python(block, "chain").view);
  return views;
}

HostView writable_view(const py::handle out) {
  HostView target = leaf_from_python(out, "chain").view;
  if (!target.writable) throw_error("chain: out is read-only; expected writable memory; allocate it by _host_empty");
  return target;
}

std::unique_ptr<HeldChain> make_chain(const std::shared_ptr<SharedChannels>& channels, int64_t before, int64_t after,
                                      const std::string& kind, const py::list& blocks, const py::object& out,
                                      int64_t begin, int64_t handed_on) {
  return std::unique_ptr<HeldChain>(
      new HeldChain{py::make_tuple(channels, py::tuple(blocks), out),
                    ReductionChain(*channels, before, after, reduction_from_name(kind), views_of(blocks),
                                   writable_view(out), {begin, handed_on})});
}

// `memory`: of each channel an ndarray of shape (slots, bytes of a piece), or None.
std::unique_ptr<HeldMessageChain> make_message_chain(const py::list& memory, const std::string& kind,
                                                     const py::list& blocks, const py::object& out, int64_t begin,
                                                     int64_t handed_on) {
  std::array<std::byte*, 4> channels{};
  Dims shape{1, 1};
  for (size_t i = 0; i < channels.size() && i < memory.size(); ++i) {
    if (memory[i].is_none()) continue;
    const HostView view = writable_view(memory[i]);
    shape = view.shape;
    channels.at(i) = static_cast<std::byte*>(view.data);
  }
  return std::unique_ptr<HeldMessageChain>(
      new HeldMessageChain{py::make_tuple(py::tuple(memory), py::tuple(blocks), out),
                           MessageChain(channels, shape[0], shape[1], reduction_from_name(kind), views_of(blocks),
                                        writable_view(out), {begin, handed_on})});
}

void bind_message_chain(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<HeldMessageChain>(internal, "MessageChain",
                               R"(This process's part of a reduction over processes that share no memory.

Channel 0 comes from and channel 3 goes to the previous process; channel 1 goes to and channel 2 comes from the next process.
)")
      .def(py::init(&make_message_chain), py::arg("memory"), py::arg("kind"), py::arg("blocks"), py::arg("out"),
           py::arg("begin"), py::arg("handed_on"),
           R"(Creates the object.

`memory` has a uint8 ndarray of shape (slots, bytes of a piece), or None, for each channel. The other arguments are the same as
the arguments of SharedChannels.chain().
)")
      .def(
          "advance",
          [](HeldMessageChain& self) {
            const ReleaseGil release;
            return self.chain.advance();
          },
          "Does the work that the messages so far allow. Returns whether everything except the last "
          "messages is done.")
      .def(
          "begin_messages",
          [](HeldMessageChain& self) {
            py::list begun;
            for (const MessageChain::Message& each : self.chain.begin_messages())
              begun.append(py::make_tuple(static_cast<int64_t>(each.channel), each.number, each.bytes));
            return begun;
          },
          "Returns (channel, number, bytes) of the messages to begin now; the slot is number % slots.")
      .def(
          "ended",
          [](HeldMessageChain& self, int64_t channel, int64_t number) {
            self.chain.ended(static_cast<MessageChain::Channel>(channel), number);
          },
          py::arg("channel"), py::arg("number"), "Records that a message has been sent or received.");
}

}  // namespace

void bind_shared_channels(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("create_channels", &SharedChannels::create, py::arg("count"),
               "Creates a memory file for the messages of one of `count` processes of a host. Returns its descriptor. "
               "The caller must close it.");
  py::class_<HeldChain>(internal, "Chain", "This process's part of a reduction over the processes of one host.")
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
  bind_message_chain(module);
  py::class_<SharedChannels, std::shared_ptr<SharedChannels>>(internal, "SharedChannels",
                                                              "Messages and streams between the processes of one host.")
      .def(py::init(
               [](int64_t me, const std::vector<int>& files) { return std::make_shared<SharedChannels>(me, files); }),
           py::arg("me"), py::arg("files"))
      .def_readonly_static("max_message_bytes", &SharedChannels::kMaxMessageBytes,
                           "Maximum number of bytes of one message.")
      .def(
          "post",
          [](SharedChannels& self, const ProcessIds& to, const py::bytes& message) {
            self.post(to, std::string_view(message));
          },
          py::arg("receivers"), py::arg("message"), "Sends a message to each receiver. Never waits.")
      .def(
          "skip", [](SharedChannels& self, const ProcessIds& from) { self.skip(from); }, py::arg("senders"),
          "Discards the next message of each sender.")
      .def("wait", &wait, py::arg("senders"), py::arg("seconds"),
           "Waits at most `seconds`. Returns whether a message of each sender has arrived.")
      .def("take", &take, py::arg("senders"),
           "Returns the oldest message of each sender (bytes), which must have arrived.")
      .def("chain", &make_chain, py::arg("before"), py::arg("after"), py::arg("kind"), py::arg("blocks"),
           py::arg("out"), py::arg("begin"), py::arg("handed_on"),
           R"(Creates this process's part of a reduction of flat blocks.

Args:
    before: Process before this one in the chain, or -1.
    after: Process after this one in the chain, or -1.
    kind: "sum", "prod", "max" or "min".
    blocks: Flat ndarrays to reduce.
    out: This process's share of the result.
    begin: Number of the first element of that share.
    handed_on: End of the elements that processes before it need.
)");
}

}  // namespace artifex_devices::bindings
