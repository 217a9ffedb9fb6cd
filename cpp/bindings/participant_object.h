// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// One run of a body, as CPython sees it; Python's class Participant derives from it. Stages make them.
struct ParticipantObject {
  PyObject_HEAD PyObject* program;
  PyObject* owner;  // a SchedulerObject
  PyObject* args;   // of its body: a tuple, or the only one
  PyObject* code;   // where the body called its last collective
  PyObject* context;
  Py_ssize_t position;
  unsigned long thread;  // the only one that may call collectives, once it runs
  int instruction;
  char has_ended;
};

extern PyTypeObject* participant_class;
extern PyObject* participant_variable;  // who runs in a context

/// Throws TypeError for what is none.
ParticipantObject& participant_at(PyObject* object);

/// The participant of the calling context while it may meet others, on its own thread; null for none.
py::object participant_here();

/// Notes where a body called a collective.
void note_call(ParticipantObject& me, PyObject* frame);

void bind_participant(py::module_& module);

}  // namespace artifex_devices::bindings
