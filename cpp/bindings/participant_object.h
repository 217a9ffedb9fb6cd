// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_devices/base/id.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// One run of a body, as CPython sees it. Python's class Participant derives from it; schedulers create them.
struct ParticipantObject {
  PyObject_HEAD PyObject* session;
  PyObject* owner;  // a SchedulerObject
  PyObject* args;   // arguments of its body: a tuple, or the only argument
  PyObject* code;   // of the body's last call of a collective
  PyObject* context;
  Py_ssize_t position;
  int64_t step;          // number of collectives that its body has called
  unsigned long thread;  // the only thread that may call collectives, once it runs
  int instruction;
  char has_ended;

  ParticipantId id() const noexcept { return ParticipantId(position); }
};

extern PyTypeObject* participant_class;
extern PyObject* participant_variable;  // the current participant

/// Throws TypeError for another object.
ParticipantObject& participant_at(PyObject* object);

/// The participant of the calling context, if it may call collectives on this thread; else null.
py::object participant_here();

/// Records where a body called a collective.
void note_call(ParticipantObject& me, PyObject* frame);

[[gnu::cold]] void bind_participant(py::module_& module);

}  // namespace artifex_devices::bindings
