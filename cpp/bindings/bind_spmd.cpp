// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/spmd/rendezvous.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "scheduler.h"

namespace artifex_devices::bindings {
namespace {

// 2 for a list of one and the same ndarray, 1 for ndarrays of the very same dtype and shape, else 0.
int64_t likeness(const py::list& parts) {
  const size_t count = parts.size();
  if (count == 0) return 0;
  PyObject* one = PyList_GET_ITEM(parts.ptr(), 0);
  const NdarrayKind first = kind_of_ndarray(one);
  if (first.dtype == nullptr) return 0;
  bool is_one = true;
  for (size_t i = 1; i < count; ++i) {
    PyObject* part = PyList_GET_ITEM(parts.ptr(), static_cast<py::ssize_t>(i));
    if (part == one) continue;
    is_one = false;
    const NdarrayKind kind = kind_of_ndarray(part);
    if (kind.dtype != first.dtype || !std::ranges::equal(kind.shape, first.shape)) return 0;
  }
  return is_one ? 2 : 1;
}

}  // namespace

void bind_spmd(py::module_& module) {
  py::class_<Rendezvous> rendezvous(module, "Rendezvous",
                                    "Where the participants of one program meet for collectives.");
  rendezvous
      .def(py::init([](int64_t participants) { return std::make_unique<Rendezvous>(participants); }),
           py::arg("participants"))
      .def("group", &Rendezvous::group, py::arg("members"), "The number of a group of participants.")
      .def(
          "arrive",
          [](Rendezvous& self, int64_t participant, int64_t group, int64_t signature) {
            return static_cast<int64_t>(self.arrive(participant, group, signature));
          },
          py::arg("participant"), py::arg("group"), py::arg("signature"),
          "0: the last one, which does the work and says delivered; 1: wait; 2: the program has failed.")
      .def("delivered", &Rendezvous::delivered, py::arg("participant"), "The work of the collective is done.")
      .def("may_go", &Rendezvous::may_go, py::arg("participant"), "Whether a participant need not wait longer.")
      .def(
          "wait",
          [](Rendezvous& self, int64_t participant, std::optional<double> seconds) {
            const ReleaseGil release;
            return self.wait(participant, seconds);
          },
          py::arg("participant"), py::arg("seconds"),
          "Waits until may_go; False when the program failed or the time is over. Ctrl-C ends it.")
      .def("finished", &Rendezvous::finished, py::arg("participant"), "The participant's body returned.")
      .def("raised", &Rendezvous::raised, py::arg("participant"), "The participant's body raised.")
      .def(
          "cancel", [](Rendezvous& self) { self.fail(Rendezvous::Failure::kCancelled); }, "Ends all waits.")
      .def(
          "expire", [](Rendezvous& self) { self.fail(Rendezvous::Failure::kDeadline); },
          "Ends all waits: they took too long.")
      .def_property_readonly(
          "failure", [](const Rendezvous& self) { return std::string(to_string(self.failure())); },
          "\"\", \"mismatch\", \"early exit\", \"deadlock\", \"deadline\", \"body\" or \"cancelled\".")
      .def(
          "standings",
          [](const Rendezvous& self) {
            py::list result;
            for (const auto& standing : self.standings()) {
              result.append(py::make_tuple(std::string(to_string(standing.state)), standing.group, standing.signature,
                                           standing.collectives));
            }
            return result;
          },
          "(state, group, signature, number of collectives) of each participant, as they were when it failed.");
  module.def("_likeness", &likeness, py::arg("parts"),
             "2 for a list of one and the same ndarray, 1 for ndarrays of the very same dtype and shape, else 0.");
  bind_scheduler(module);
}

}  // namespace artifex_devices::bindings
