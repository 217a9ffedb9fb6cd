// SPDX-License-Identifier: Apache-2.0
// Records of meetings between processes, and meetings through shared memory, for artifex_devices.distributed.
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "artifex_devices/collective/meeting_record.h"
#include "artifex_devices/collective/shared_meeting_point.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "fast_path.h"
#include "flight_group.h"
#include "gil.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

using std::chrono_literals::operator""us;

// Afterwards Python continues the wait, which notices Ctrl-C, failures of other processes and the deadline.
constexpr auto kFirstWait = 200us;

// UTF-8 of at most `max_bytes` of a text, in which backslashes stand for what UTF-8 does not have.
struct EncodedText {
  EncodedText(PyObject* text, size_t max_bytes) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text, &size);
    if (data == nullptr) {
      PyErr_Clear();
      owner = checked(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
      data = PyBytes_AS_STRING(owner.ptr());
      size = PyBytes_GET_SIZE(owner.ptr());
    }
    view = std::string_view(data, std::min(static_cast<size_t>(size), max_bytes));
  }

  py::object owner;
  std::string_view view;
};

std::string_view bytes_view(PyObject* bytes) {
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}

// A meeting, the place of this process in it, and how many bytes of a text it sends.
struct __attribute__((visibility("hidden"))) HeldMeetingPoint {
  SharedMeetingPoint meeting;
  size_t mine;
  size_t max_text;
};

// Sends a record. Returns the payload of each member if all soon reach the same operation. Otherwise returns None; the
// other members' records are then still unread, and the event of the group, which may be null, continues. Returns null
// with a Python error.
PyObject* shared_meet(HeldMeetingPoint& self, uint8_t kind, PyObject* digest, PyObject* payload, PyObject* text,
                      RecordedGroup* group) {
  const uint64_t event = group == nullptr ? 0 : group->begin(text, digest);
  const EncodedText encoded(text, self.max_text);
  SharedMeetingPoint& meeting = self.meeting;
  meeting.start({.digest = bytes_view(digest), .kind = kind, .payload = bytes_view(payload), .text = encoded.view});
  bool have_come = meeting.wait(0us);
  if (!have_come) {
    const ReleaseGil release;
    have_come = meeting.wait(kFirstWait);
  }
  if (!have_come || !meeting.all_same()) return Py_NewRef(Py_None);
  const size_t others = meeting.others().size();
  PyObject* const payloads = PyList_New(static_cast<Py_ssize_t>(others) + 1);
  if (payloads == nullptr) return nullptr;
  PyList_SET_ITEM(payloads, static_cast<Py_ssize_t>(self.mine), Py_NewRef(payload));
  for (size_t other = 0; other < others; ++other) {
    const std::string_view data = meeting.payload(other);
    PyObject* const bytes = PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size()));
    if (bytes == nullptr) {
      Py_DECREF(payloads);
      return nullptr;
    }
    PyList_SET_ITEM(payloads, static_cast<Py_ssize_t>(other < self.mine ? other : other + 1), bytes);
  }
  meeting.release();
  if (group != nullptr) group->recorder().end(event, FlightOutcome::kDone);
  return payloads;
}

// Returns the group of a Python object: null for None, and nothing for objects of other types.
std::optional<RecordedGroup*> group_of(PyObject* object) {
  static PyObject* const type = py::type::of<RecordedGroup>().release().ptr();
  if (object == Py_None) return nullptr;
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type) return std::nullopt;
  RecordedGroup* const group = value_in<RecordedGroup>(object);
  return group == nullptr ? std::nullopt : std::optional(group);
}

PyObject* fast_shared_meet(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  auto* held = value_in<HeldMeetingPoint>(self);
  if (!held || count != 5 || !PyLong_CheckExact(arguments[0]) || !PyBytes_CheckExact(arguments[1]) ||
      !PyBytes_CheckExact(arguments[2]) || !PyUnicode_CheckExact(arguments[3])) {
    return nullptr;
  }
  const std::optional<RecordedGroup*> group = group_of(arguments[4]);
  if (!group) return nullptr;
  const long kind = PyLong_AsLong(arguments[0]);
  if (kind == -1 && PyErr_Occurred() != nullptr) return nullptr;
  return shared_meet(*held, static_cast<uint8_t>(kind), arguments[1], arguments[2], arguments[3], *group);
}

py::bytes bytes_from(std::string_view view) { return {view.data(), view.size()}; }

}  // namespace

void bind_meeting(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.attr("MEETING_HEAD_BYTES") = MeetingRecord::kHeadBytes;
  internal.def(
      "meeting_record",
      [](uint8_t kind, const py::bytes& digest, uint32_t group, const py::bytes& payload, const py::str& text,
         size_t max_text) {
        std::string bytes;
        const EncodedText encoded(text.ptr(), max_text);
        write_meeting_record({.digest = bytes_view(digest.ptr()),
                              .group = group,
                              .kind = kind,
                              .payload = bytes_view(payload.ptr()),
                              .text = encoded.view},
                             bytes);
        return bytes_from(bytes);
      },
      py::arg("kind"), py::arg("digest"), py::arg("group"), py::arg("payload"), py::arg("text"), py::arg("max_text"),
      "Returns the bytes that a process sends in a meeting; at most max_text bytes of the text.");
  internal.def(
      "read_meeting_record",
      [](const py::bytes& bytes) {
        const MeetingRecord record = read_meeting_record(bytes_view(bytes.ptr()));
        return std::make_tuple(record.kind, bytes_from(record.payload), text_of_bytes(record.text));
      },
      py::arg("record"), "Returns kind, payload and text of a record.");
  internal.def(
      "is_same_meeting",
      [](const py::bytes& one, const py::bytes& other) {
        return is_same_meeting(bytes_view(one.ptr()), bytes_view(other.ptr()));
      },
      py::arg("record"), py::arg("other"), "Returns whether two records are of the same operation.");
  const py::object meeting =
      py::class_<HeldMeetingPoint>(internal, "SharedMeetingPoint",
                                   "Meetings of processes of one host, through shared memory.")
          .def(py::init([](std::shared_ptr<SharedChannels> channels, std::vector<int64_t> others, size_t mine,
                           uint32_t group, size_t max_text) {
                 return std::unique_ptr<HeldMeetingPoint>(new HeldMeetingPoint{
                     SharedMeetingPoint(std::move(channels), std::move(others), group), mine, max_text});
               }),
               py::arg("channels"), py::arg("others"), py::arg("mine"), py::arg("group"), py::arg("max_text"),
               R"(Creates the object.

`others` has the numbers of the other members in the channels; `mine` is the position of this process among all members.
)")
          .def(
              "meet",
              [](HeldMeetingPoint& self, uint8_t kind, const py::bytes& digest, const py::bytes& payload,
                 const py::str& text, RecordedGroup* group) {
                return checked(shared_meet(self, kind, digest.ptr(), payload.ptr(), text.ptr(), group));
              },
              py::arg("kind"), py::arg("digest"), py::arg("payload"), py::arg("text"), py::arg("flight") = py::none(),
              R"(Sends a record and waits shortly for the records of the other members.

Returns:
    The payload of each member (bytes) if all of them soon reach the same operation, else None. After None, the caller must
    take the records of the others from the channels, and end the event that began in the flight record, if there is one.
)")
          .def(
              "start",
              [](HeldMeetingPoint& self, uint8_t kind, const py::bytes& digest, const py::bytes& payload,
                 const py::str& text) {
                const EncodedText encoded(text.ptr(), self.max_text);
                self.meeting.start({.digest = bytes_view(digest.ptr()),
                                    .kind = kind,
                                    .payload = bytes_view(payload.ptr()),
                                    .text = encoded.view});
              },
              py::arg("kind"), py::arg("digest"), py::arg("payload"), py::arg("text"),
              "Sends a record. The caller must take the records of the other members from the channels.")
          .def_property_readonly(
              "sent", [](const HeldMeetingPoint& self) { return bytes_from(self.meeting.sent()); },
              "The record that was sent last.");
  add_fast_method<&fast_shared_meet>(meeting, "meet");
}

}  // namespace artifex_devices::bindings
