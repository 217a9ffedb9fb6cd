// SPDX-License-Identifier: Apache-2.0
// Memory between the processes of one host: the short way of artifex_devices.distributed and of collectives.
#include "bind_shared_lanes.h"

#include <pybind11/stl.h>

#include <chrono>
#include <memory>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/collective/chain.h"
#include "artifex_devices/collective/shared_lanes.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "reduction_name.h"

namespace artifex_devices::bindings {
namespace {

using Neighbours = std::vector<int64_t>;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

bool wait(SharedLanes& lanes, const Neighbours& from, double seconds) {
  if (lanes.wait(from, std::chrono::nanoseconds(0))) return true;
  if (seconds <= 0) return false;
  const ReleaseGil release;
  return lanes.wait(from, nanoseconds(seconds));
}

py::list take(SharedLanes& lanes, const Neighbours& from) {
  py::list letters;
  for (const int64_t neighbour : from) letters.append(py::bytes(lanes.take(neighbour)));
  return letters;
}

// A ReductionChain and the ndarrays that it reads and writes.
struct __attribute__((visibility("hidden"))) HeldChain {
  std::vector<py::object> kept;
  ReductionChain chain;
};

std::unique_ptr<HeldChain> make_chain(const std::shared_ptr<SharedLanes>& lanes, int64_t before, int64_t after,
                                      const std::string& kind, const py::list& blocks, const py::object& out,
                                      int64_t begin, int64_t handed_on) {
  std::vector<py::object> kept{py::cast(lanes), out};
  std::vector<HostView> views;
  for (const py::handle block : blocks) {
    kept.push_back(py::reinterpret_borrow<py::object>(block));
    views.push_back(leaf_from_python(block, "chain").view);
  }
  HostView target = leaf_from_python(out, "chain").view;
  if (!target.writable) throw_error("chain: out is read-only; expected memory to write; make it by _host_empty");
  return std::make_unique<HeldChain>(
      HeldChain{std::move(kept), ReductionChain(*lanes, before, after, reduction_from_name(kind), std::move(views),
                                                std::move(target), {begin, handed_on})});
}

}  // namespace

void bind_shared_lanes(py::module_& module) {
  module.def("_create_lanes", &SharedLanes::create, py::arg("count"),
             "A file in memory for what one of `count` processes of a host writes; its descriptor, to be closed.");
  py::class_<HeldChain>(module, "_Chain", "This process's part of a reduction over processes of one host.")
      .def(
          "advance",
          [](HeldChain& self, double seconds) {
            const ReleaseGil release;
            return self.chain.advance(nanoseconds(seconds));
          },
          py::arg("seconds"), "Goes on, and waits at most so long for what others have to do; whether all is done.")
      .def_property_readonly(
          "progress", [](const HeldChain& self) { return self.chain.progress(); },
          "Pieces combined or received so far.");
  py::class_<SharedLanes, std::shared_ptr<SharedLanes>>(module, "_SharedLanes",
                                                        "Letters and streams between the processes of one host.")
      .def(py::init([](int64_t me, const std::vector<int>& files) { return std::make_shared<SharedLanes>(me, files); }),
           py::arg("me"), py::arg("files"))
      .def_readonly_static("most_letter_bytes", &SharedLanes::kMostLetterBytes, "Of one letter.")
      .def(
          "post",
          [](SharedLanes& self, const Neighbours& to, const py::bytes& letter) {
            self.post(to, std::string_view(letter));
          },
          py::arg("receivers"), py::arg("letter"), "Sends a letter to each of these neighbours; never waits.")
      .def(
          "skip", [](SharedLanes& self, const Neighbours& from) { self.skip(from); }, py::arg("senders"),
          "The next letter of each of them is for nobody.")
      .def("wait", &wait, py::arg("senders"), py::arg("seconds"),
           "Whether a letter of each of them is here, at once or within the time given.")
      .def("take", &take, py::arg("senders"), "The oldest letter of each (bytes), which must be here.")
      .def(
          "chain", &make_chain, py::arg("before"), py::arg("after"), py::arg("kind"), py::arg("blocks"), py::arg("out"),
          py::arg("begin"), py::arg("handed_on"),
          "This process's part of a reduction of flat blocks. before and after: its neighbours in the row, or -1; out: "
          "its share of the result, from the element `begin` on; those before it want elements below `handed_on`.");
}

}  // namespace artifex_devices::bindings
