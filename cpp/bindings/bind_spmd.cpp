// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/spmd/rendezvous.h"
#include "bindings.h"
#include "gil.h"

namespace artifex_devices::bindings {
namespace {

constexpr const char* failure_name(Rendezvous::Failure failure) {
  switch (failure) {
    case Rendezvous::Failure::kMismatch:
      return "mismatch";
    case Rendezvous::Failure::kEarlyExit:
      return "early exit";
    case Rendezvous::Failure::kDeadlock:
      return "deadlock";
    case Rendezvous::Failure::kDeadline:
      return "deadline";
    case Rendezvous::Failure::kBody:
      return "body";
    case Rendezvous::Failure::kCancelled:
      return "cancelled";
    case Rendezvous::Failure::kNone:
      break;
  }
  return "";
}

constexpr const char* state_name(Rendezvous::State state) {
  switch (state) {
    case Rendezvous::State::kWaiting:
      return "waiting";
    case Rendezvous::State::kWorking:
      return "working";
    case Rendezvous::State::kFinished:
      return "finished";
    case Rendezvous::State::kRaised:
      return "raised";
    case Rendezvous::State::kRunning:
      break;
  }
  return "running";
}

}  // namespace

void bind_spmd(py::module_& module) {
  py::class_<Rendezvous> rendezvous(module, "Rendezvous",
                                    "Where the participants of one program meet for collectives.");
  rendezvous.def(py::init<int64_t>(), py::arg("participants"))
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
          "failure", [](const Rendezvous& self) { return std::string(failure_name(self.failure())); },
          "\"\", \"mismatch\", \"early exit\", \"deadlock\", \"deadline\", \"body\" or \"cancelled\".")
      .def(
          "standings",
          [](const Rendezvous& self) {
            py::list result;
            for (const auto& standing : self.standings()) {
              result.append(
                  py::make_tuple(state_name(standing.state), standing.group, standing.signature, standing.collectives));
            }
            return result;
          },
          "(state, group, signature, number of collectives) of each participant, as they were when it failed.");
}

}  // namespace artifex_devices::bindings
