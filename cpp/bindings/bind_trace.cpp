// SPDX-License-Identifier: Apache-2.0
// Traces of what programs do over time, for artifex_devices.profiler.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/recorder.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/flight/trace_timeline.h"
#include "artifex_devices/spmd/rendezvous.h"
#include "artifex_devices/transfer/trace_recording.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "pybind.h"
#include "world.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

namespace {

constexpr const char* kKinds[] = {"transfer", "collective", "meeting", "exchange", "wait", "prefetch", "span"};

TraceKind kind_from_name(const std::string& name) {
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    if (name == kKinds[i]) return static_cast<TraceKind>(i);
  }
  throw_error(
      "trace_event: kind is {:?}; expected one of transfer, collective, meeting, exchange, wait, prefetch, span", name);
}

// The fields of TraceEvent in their order.
using EventRow = std::tuple<std::string, int64_t, std::string, int64_t, std::string, std::string, int64_t, int64_t,
                            int64_t, int64_t, int64_t, uint64_t, std::string, int>;

EventRow row_of(const TraceEvent& event) {
  return {kKinds[static_cast<size_t>(event.kind)],
          event.process.number(),
          event.device,
          event.thread,
          event.name,
          event.detail,
          event.begin_ns,
          event.end_ns,
          event.busy_ns,
          event.planned_bytes,
          event.moved_bytes,
          event.meeting,
          event.file,
          event.line};
}

TraceEvent event_of(const EventRow& row) {
  const auto& [kind, process, device, thread, name, detail, begin_ns, end_ns, busy_ns, planned, moved, meeting, file,
               line] = row;
  return {kind_from_name(kind),
          ProcessIndex(process),
          device,
          thread,
          name,
          detail,
          begin_ns,
          end_ns,
          busy_ns,
          planned,
          moved,
          meeting,
          file,
          line};
}

void trace_event(const std::string& kind, std::string name, std::string detail, int64_t begin_ns, int64_t process,
                 int64_t bytes, uint64_t meeting) {
  if (!is_recorded(Recorded::kSpans)) return;
  TraceEvent event{.kind = kind_from_name(kind),
                   .process = ProcessIndex(process),
                   .name = std::move(name),
                   .detail = std::move(detail),
                   .begin_ns = begin_ns};
  event.end_ns = clock_ns();
  event.moved_bytes = bytes;
  event.meeting = meeting;
  if (auto line = caller_line()) {
    event.file = std::move(line->file);
    event.line = line->line;
  }
  record(std::move(event));
}

void trace_collective(const Rendezvous& rendezvous, int64_t position, const std::string& name,
                      const std::string& operation, const std::vector<std::pair<std::string, std::string>>& members,
                      int64_t process, uint64_t meeting) {
  const std::vector<Rendezvous::ArrivalTime> times = rendezvous.arrival_times(ParticipantId(position));
  if (meeting == 0) meeting = new_trace_meeting();
  const int64_t end_ns = clock_ns();
  for (size_t i = 0; i < std::min(times.size(), members.size()); ++i) {
    const Rendezvous::ArrivalTime& time = times[i];
    if (time.arrived_ns == 0) continue;
    const auto& [device, site] = members[i];
    TraceEvent event{
        .kind = TraceKind::kCollective, .process = ProcessIndex(process), .device = device, .thread = time.thread};
    event.name = name;
    event.detail = operation;
    event.begin_ns = time.arrived_ns;
    event.end_ns = end_ns;
    event.busy_ns = time.busy_ns;
    event.meeting = meeting;
    const size_t colon = site.rfind(':');
    if (colon != std::string::npos) {
      event.file = site.substr(0, colon);
      event.line = std::atoi(site.c_str() + colon + 1);
    }
    record(std::move(event));
  }
}

py::list meetings_of(const std::vector<EventRow>& rows) {
  std::vector<TraceEvent> events;
  events.reserve(rows.size());
  for (const EventRow& row : rows) events.push_back(event_of(row));
  py::list result;
  for (const TraceMeeting& meeting : trace_meetings(events)) {
    result.append(py::make_tuple(meeting.members, meeting.slowest, meeting.waited_ns));
  }
  return result;
}

py::object difference_of(const std::vector<std::tuple<int64_t, int64_t, int64_t>>& trips) {
  std::vector<RoundTrip> given;
  given.reserve(trips.size());
  for (const auto& [sent_ns, answered_ns, returned_ns] : trips) given.push_back({sent_ns, answered_ns, returned_ns});
  const std::optional<ClockDifference> found = clock_difference(given);
  if (!found) return py::none();
  return py::make_tuple(found->ahead_ns, found->error_ns);
}

}  // namespace

void bind_trace(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<TraceRecording>(internal, "TraceRecording",
                             "Records events of this process, and memory of the current world's devices, until stop().")
      .def(py::init([](int64_t process) {
             return std::make_unique<TraceRecording>(ProcessIndex(process), current_client());
           }),
           py::arg("process"))
      .def("stop", by_reference(&TraceRecording::stop), "Ends the recording. A second call does nothing.")
      .def(
          "events",
          [](const TraceRecording& self) {
            py::list rows;
            for (const TraceEvent& event : self.events()) rows.append(py::cast(row_of(event)));
            return rows;
          },
          R"(Returns a row for each recorded event.

A row is (kind, process, device, thread, name, detail, begin, end, time that a participant ran before, planned bytes,
moved bytes, meeting, file, line), with times in ns.
)")
      .def(
          "memory",
          [](const TraceRecording& self) {
            py::list rows;
            for (const TraceMemory& value : self.memory())
              rows.append(py::make_tuple(value.process.number(), value.device, value.time_ns, value.bytes));
            return rows;
          },
          "Returns rows of (process, device, time in ns, bytes of arrays from that time on).")
      .def_property_readonly("dropped", by_reference(&TraceRecording::dropped),
                             "Number of events and values that were not recorded, for lack of space.");
  internal.attr("SHARED_TRACE_MEETING") = TraceEvent::kSharedMeeting;
  internal.def("is_tracing", [] { return is_recorded(Recorded::kSpans); }, "Returns whether a trace is open.");
  internal.def(
      "trace_begin", [] { return recorded_begin_ns(Recorded::kSpans); },
      "Returns the time in ns while a trace is open, else 0.");
  internal.def("trace_clock", [] { return clock_ns(); }, "Returns the time in ns.");
  internal.def(
      "set_trace_process", [](int64_t process) { set_trace_process(ProcessIndex(process)); }, py::arg("process"),
      "Sets the process of this thread's events; -1 for the process of the trace.");
  internal.def("trace_event", &trace_event, py::arg("kind"), py::arg("name"), py::arg("detail"), py::arg("begin"),
               py::arg("process") = -1, py::arg("bytes") = 0, py::arg("meeting") = 0,
               "Adds an event that ends now to open traces, with the line of the program.");
  internal.def("trace_collective", &trace_collective, py::arg("rendezvous"), py::arg("position"), py::arg("name"),
               py::arg("operation"), py::arg("members"), py::arg("process"), py::arg("meeting"),
               R"(Adds the collective that a participant completes to open traces.

`members` has the device and the line of each member, in their order; `meeting` is 0 for a collective within the process.
)");
  internal.def("trace_meetings", &meetings_of, py::arg("events"),
               "Returns (rows of the members, row of the slowest, ns that other members waited) for each meeting.");
  internal.def(
      "clock_difference", &difference_of, py::arg("trips"),
      "Returns (ns that the other clock is ahead, error in ns) from round trips (sent, answered, returned), or "
      "None.");
}

}  // namespace artifex_devices::bindings
