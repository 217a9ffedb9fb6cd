// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "artifex_devices/spmd/process_map.h"
#include "artifex_devices/spmd/rendezvous.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "scheduler.h"

namespace artifex_devices::bindings {
namespace {

// 2 if all parts are the same ndarray, 1 if they are ndarrays of one dtype and shape, else 0.
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

std::vector<ParticipantId> participant_ids(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

template <class I>
py::tuple tuple_of(const std::vector<I>& ids) {
  return py::tuple(py::cast(numbers(ids)));
}

template <class I, class Value>
py::tuple tuple_of(const IdVector<I, Value>& ids) {
  return tuple_of(ids.values());
}

template <class Group>
py::tuple tuples_of(const std::vector<Group>& groups) {
  return py::tuple(make_list(groups, [](const Group& group) { return tuple_of(group); }));
}

py::object process_groups(const std::optional<CrossProcessGroups>& across) {
  if (!across) return py::none();
  py::list groups;
  for (const CrossProcessGroup& group : across->groups) {
    py::dict here, held;
    for (const auto& [index, slot] : group.here) here[py::int_(index.number())] = slot.number();
    for (size_t p = 0; p < group.processes.size(); ++p) {
      held[py::int_(group.processes[p].number())] = tuple_of(group.held[p]);
    }
    groups.append(
        py::make_tuple(tuple_of(group.members), tuple_of(group.owners), here, tuple_of(group.processes), held));
  }
  return py::make_tuple(tuple_of(across->processes), py::tuple(groups), tuple_of(across->slots), across->is_even,
                        across->in_runs);
}

void bind_process_map(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "axis_groups",
      [](const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes) {
        return tuples_of(axis_groups(sizes, axes));
      },
      py::arg("sizes"), py::arg("axes"),
      R"(Returns the groups of participants that differ along these axes only.

The members of a group are row-major over the axes, in the order in which the axes are listed.
)");
  py::class_<ProcessMap>(internal, "ProcessMap", "Assignment of the participants of a mesh to processes.")
      .def(py::init([](int64_t process, std::vector<int64_t> sizes, std::vector<std::vector<int64_t>> holders) {
             IdVector<ParticipantId, std::vector<ProcessIndex>> processes;
             for (const auto& each : holders) processes.push_back({each.begin(), each.end()});
             return std::make_unique<ProcessMap>(ProcessIndex(process), std::move(sizes), std::move(processes));
           }),
           py::arg("process"), py::arg("sizes"), py::arg("holders"))
      .def_property_readonly(
          "processes", [](const ProcessMap& self) { return tuple_of(self.processes()); },
          "All processes that run a participant, ascending.")
      .def_property_readonly(
          "here", [](const ProcessMap& self) { return tuple_of(self.here()); }, "Participants of this process.")
      .def(
          "groups_across",
          [](const ProcessMap& self, const std::vector<std::vector<int64_t>>& groups) {
            std::vector<Members> members;
            for (const auto& group : groups) members.emplace_back(participant_ids(group));
            return process_groups(self.groups_across(members));
          },
          py::arg("groups"),
          "Returns the fields of a CrossProcessGroups for the groups that span processes, or None if there "
          "are none.")
      .def(
          "same_parts",
          [](const ProcessMap& self, const std::vector<int64_t>& unnamed) {
            return process_groups(self.same_parts(unnamed));
          },
          py::arg("unnamed"),
          R"(Returns the fields of a CrossProcessGroups for the processes that hold the same parts of a value, or None.

The value is sharded over all axes except `unnamed`.
)")
      .def(
          "meeting_sets", [](const ProcessMap& self) { return tuples_of(self.meeting_sets()); },
          "Returns every set of processes, including this process, that run collectives over axes of the mesh "
          "together.");
}

void deliver(Rendezvous& rendezvous, int64_t participant, const py::list& results, const py::tuple& members,
             const py::list& made) {
  const auto count = static_cast<Py_ssize_t>(members.size());
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(members.ptr(), i));
    PyObject* const result = PyList_GetItem(made.ptr(), i);
    if (result == nullptr || PyErr_Occurred() != nullptr ||
        PyList_SetItem(results.ptr(), position, py::reinterpret_borrow<py::object>(result).release().ptr()) != 0) {
      throw py::error_already_set();
    }
  }
  rendezvous.delivered(ParticipantId(participant));
}

}  // namespace

void bind_spmd(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  bind_process_map(module);
  py::class_<Rendezvous> rendezvous(module, "Rendezvous",
                                    "State machine that synchronizes the participants of a session in collectives.");
  rendezvous
      .def(py::init([](int64_t participants) { return std::make_unique<Rendezvous>(participants); }),
           py::arg("participants"))
      .def(
          "group",
          [](Rendezvous& self, const std::vector<int64_t>& members) {
            return self.group(participant_ids(members)).number();
          },
          py::arg("members"), "Returns the number of a group of participants.")
      .def(
          "arrive",
          [](Rendezvous& self, int64_t participant, int64_t group, int64_t signature) {
            return static_cast<int64_t>(self.arrive(ParticipantId(participant), GroupId(group), signature));
          },
          py::arg("participant"), py::arg("group"), py::arg("signature"),
          "Returns 0 if this participant is the last: it does the work and calls deliver(); 1 if it must "
          "wait; 2 if the session failed.")
      .def(
          "deliver", &deliver, py::arg("participant"), py::arg("results"), py::arg("members"), py::arg("made"),
          R"(Stores the collective's results in `results`, at the positions of its members, and lets the members continue.

Ctrl-C interrupts it before it has stored anything or after it has stored everything.
)")
      .def(
          "may_go", [](const Rendezvous& self, int64_t participant) { return self.may_go(ParticipantId(participant)); },
          py::arg("participant"), "Returns whether a participant may stop waiting.")
      .def(
          "wait",
          [](Rendezvous& self, int64_t participant, std::optional<double> seconds) {
            const ReleaseGil release;
            return self.wait(ParticipantId(participant), seconds);
          },
          py::arg("participant"), py::arg("seconds"),
          "Waits until may_go() is true. Returns False if the session failed or the timeout expired. Ctrl-C "
          "interrupts it.")
      .def(
          "finished", [](Rendezvous& self, int64_t participant) { self.finished(ParticipantId(participant)); },
          py::arg("participant"), "Reports that the participant's body returned.")
      .def(
          "raised", [](Rendezvous& self, int64_t participant) { self.raised(ParticipantId(participant)); },
          py::arg("participant"), "Reports that the participant's body raised.")
      .def(
          "cancel", [](Rendezvous& self) { self.fail(Rendezvous::Failure::kCancelled); }, "Ends all waits.")
      .def_property_readonly(
          "failure", [](const Rendezvous& self) { return std::string(to_string(self.failure())); },
          "Kind of failure: \"mismatch\", \"early exit\", \"deadlock\", \"deadline\", \"body\", \"cancelled\", or \"\" "
          "for none.")
      .def(
          "standings",
          [](const Rendezvous& self) {
            return make_list(self.standings(), [](const auto& standing) {
              return py::make_tuple(std::string(to_string(standing.state)), standing.group.number(), standing.signature,
                                    standing.collectives);
            });
          },
          "Returns (state, group, signature, number of collectives) of each participant at the time of the failure, or "
          "now.");
  internal.def("likeness", &likeness, py::arg("parts"),
               "Returns 2 if all parts are the same ndarray, 1 if they are ndarrays of one dtype and shape, else 0.");
  bind_scheduler(module);
}

}  // namespace artifex_devices::bindings
