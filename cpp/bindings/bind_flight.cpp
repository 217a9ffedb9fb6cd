// SPDX-License-Identifier: Apache-2.0
// Records of the last operations of each process of a job, for artifex_devices.distributed.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/flight/flight_record.h"
#include "artifex_devices/flight/flight_recorder.h"
#include "artifex_devices/flight/flight_timeline.h"
#include "bindings.h"
#include "caller_place.h"
#include "class_members.h"
#include "fast_path.h"
#include "flight_group.h"
#include "gil.h"
#include "pybind.h"
#include "python_text.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

namespace {

uint64_t exchange(FlightRecorder& self, std::string_view text, bool in_shared_memory) {
  const FlightRoute route = in_shared_memory ? FlightRoute::kSharedMemory : FlightRoute::kMessages;
  const CallerPlace place = caller_place();  // until the GIL is released
  return self.begin_exchange({.text = text, .route = route, .file = place.file, .line = place.line});
}

PyObject* fast_meet(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  auto* group = value_in<RecordedGroup>(self);
  if (!group || count != 2 || !PyUnicode_CheckExact(arguments[0]) || !PyBytes_CheckExact(arguments[1])) return nullptr;
  group->begin(arguments[0], arguments[1]);
  return Py_NewRef(Py_None);
}

PyObject* fast_end(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  auto* recorder = value_in<FlightRecorder>(self);
  if (!recorder || count < 1 || count > 2) return nullptr;
  uint64_t values[2] = {0, 0};  // the number and the bytes
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyLong_CheckExact(arguments[i])) return nullptr;
    values[i] = PyLong_AsUnsignedLongLong(arguments[i]);
    if (values[i] == static_cast<uint64_t>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  }
  recorder->end(values[0], FlightOutcome::kDone, values[1]);
  return Py_NewRef(Py_None);
}

const char* name_of(FlightKind kind) { return kind == FlightKind::kMeeting ? "meeting" : "exchange"; }

const char* name_of(FlightRoute route) {
  if (route == FlightRoute::kNone) return "";
  return route == FlightRoute::kMessages ? "messages" : "shared memory";
}

const char* name_of(FlightOutcome outcome) {
  if (outcome == FlightOutcome::kLasts) return "lasts";
  return outcome == FlightOutcome::kDone ? "done" : "failed";
}

void bind_events(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<FlightEvent>(internal, "FlightEvent", "A recorded operation between processes.")
      .def_readonly("number", &FlightEvent::number)
      .def_property_readonly("kind", [](const FlightEvent& self) { return name_of(self.kind); })
      .def_property_readonly("route", [](const FlightEvent& self) { return name_of(self.route); })
      .def_property_readonly("outcome", [](const FlightEvent& self) { return name_of(self.outcome); })
      .def_readonly("turn", &FlightEvent::turn)
      .def_property_readonly("processes", [](const FlightEvent& self) { return text_of_bytes(self.processes); })
      .def_property_readonly("operation", [](const FlightEvent& self) { return text_of_bytes(self.operation); })
      .def_property_readonly("file", [](const FlightEvent& self) { return text_of_bytes(self.file); })
      .def_readonly("line", &FlightEvent::line)
      .def_readonly("digest", &FlightEvent::digest)
      .def_readonly("bytes", &FlightEvent::bytes)
      .def_readonly("begin_ns", &FlightEvent::begin_ns)
      .def_readonly("end_ns", &FlightEvent::end_ns);
  py::class_<FlightRecord>(internal, "FlightRecord", "The last operations of a process.")
      .def_readonly("process", &FlightRecord::process)
      .def_readonly("process_count", &FlightRecord::process_count)
      .def_readonly("pid", &FlightRecord::pid)
      .def_property_readonly("host", [](const FlightRecord& self) { return text_of_bytes(self.host); })
      .def_readonly("has_left", &FlightRecord::has_left)
      .def_readonly("begin_ns", &FlightRecord::begin_ns)
      .def_readonly("event_count", &FlightRecord::event_count)
      .def_property_readonly("events", [](const FlightRecord& self) { return self.events; });
}

}  // namespace

void bind_flight(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  const py::object group =
      py::class_<RecordedGroup, std::shared_ptr<RecordedGroup>>(internal, "FlightGroup",
                                                                "A set of processes that run operations together.")
          .def(
              "meet",
              [](RecordedGroup& self, const py::str& text, const py::bytes& digest) {
                self.begin(text.ptr(), digest.ptr());
              },
              py::arg("text"), py::arg("digest"), "Records that a meeting begins; `last` is its number.")
          .def_property_readonly("last", by_reference(&RecordedGroup::last),
                                 "The number of the meeting that began last.");
  add_fast_method<&fast_meet>(group, "meet");
  const auto ends_with = [](FlightOutcome outcome) {
    return [outcome](FlightRecorder& self, uint64_t number, uint64_t bytes) { self.end(number, outcome, bytes); };
  };
  py::class_<FlightRecorder, std::shared_ptr<FlightRecorder>> recorder(
      internal, "FlightRecorder",
      "File with the last operations of this process. Raises OSError if it cannot be created.");
  recorder
      .def(py::init([](const std::string& path, int process, int process_count, std::string_view host) {
             return std::make_shared<FlightRecorder>(path, process, process_count, host);
           }),
           py::arg("path"), py::arg("process"), py::arg("process_count"), py::arg("host"))
      .def(
          "group",
          [](const std::shared_ptr<FlightRecorder>& self, const std::vector<int>& processes) {
            return std::make_shared<RecordedGroup>(self, processes);
          },
          py::arg("processes"), "Returns a group of processes, given their numbers, ascending.")
      .def("exchange", &exchange, py::arg("text"), py::arg("in_shared_memory"),
           "Records that bytes begin to move; returns the number of the event.")
      .def("end", ends_with(FlightOutcome::kDone), py::arg("number"), py::arg("bytes") = 0,
           "Records that an event has succeeded, and the bytes that this process sent and received.")
      .def("fail", ends_with(FlightOutcome::kFailed), py::arg("number"), py::arg("bytes") = 0,
           "Records that an event has failed.")
      .def("leave", by_reference(&FlightRecorder::leave), "Records that this process has left its job.");
  add_fast_method<&fast_end>(recorder, "end");
  bind_events(module);
  internal.def("read_flight_record", &read_flight_record, py::call_guard<ReleaseGil>(), py::arg("path"),
               "Reads the record of a process. Raises ValueError if the file is not a record.");
  internal.def(
      "compare_flight_records",
      [](const std::vector<FlightRecord>& records) {
        const auto reports = without_gil([&] { return compare_flight_records(records); });
        py::list rows;
        for (const FlightGroupReport& report : reports) {
          py::list members;
          for (const auto& member : report.members) members.append(py::make_tuple(member.process, member.next));
          rows.append(
              py::make_tuple(text_of_bytes(report.processes), report.common, members, report.behind, report.is_apart));
        }
        return rows;
      },
      py::arg("records"),
      R"(Compares the records of a job's processes, group by group.

Returns:
    list of (processes, last common meeting, [(process, next meeting)], processes behind, whether they are apart).
)");
  internal.def(
      "flight_timeline",
      [](const std::vector<FlightRecord>& records) {
        const auto timeline = without_gil([&] { return timeline_of(records); });
        py::list clocks;
        for (const HostClock& clock : timeline.clocks)
          clocks.append(py::make_tuple(text_of_bytes(clock.host), clock.ahead_ns, clock.error_ns));
        py::list meetings;
        for (const JobMeeting& meeting : timeline.meetings) {
          py::list members;
          for (const auto& member : meeting.members)
            members.append(py::make_tuple(member.record, member.event, member.begin_ns, member.end_ns));
          meetings.append(py::make_tuple(text_of_bytes(meeting.operation), text_of_bytes(meeting.processes), members,
                                         meeting.last, meeting.waited_ns));
        }
        return py::make_tuple(clocks, timeline.clock_of, meetings);
      },
      py::arg("records"),
      R"(Returns the clocks of the hosts, the clock of each record, and the meetings of the job.

Returns:
    ([(host, ns that its clock is ahead, error in ns or -1)], number of each record's clock, [(operation, processes,
    [(record, event, begin in ns, end in ns)], position of the last member, ns that other members waited)]).
)");
}

}  // namespace artifex_devices::bindings
