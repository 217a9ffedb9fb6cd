// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "artifex_devices/spmd/rendezvous.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

inline constexpr size_t kKinds = 8;  // further kinds are looked up in Python

/// A collective of one ndarray without options that the program has called before.
struct Kind {
  py::object operation;
  py::object axis_name;
  py::object dtype;
  std::vector<py::ssize_t> shape;
  py::object meeting;
  std::vector<int64_t> groups;  // by participant, or one for all
  int64_t signature;
};

/// The participants of one program: their states, the turns of the cooperative executor, and the kinds of collectives
/// called before. Needs the GIL. It only chooses the next participant; Python switches to it, with none of our frames
/// on the stack.
struct Scheduler {
  py::object owner;  // keeps the rendezvous alive
  Rendezvous* rendezvous;
  py::object pending;  // marks a missing result
  py::object participant_class;
  py::list payloads;
  py::list results;
  std::vector<Kind> kinds;
  py::object plain;  // code of a body whose waits, if `root` called it, need no wait(me, frame)

  // Of one call, from open to close.
  py::object program;
  py::list outcomes;  // results of the bodies
  std::vector<py::object> participants;

  // Of the cooperative executor, from begin_turns to close. A seat is (switch to its greenlet, [host]).
  py::object host;                 // stored in each used seat
  py::object hub;                  // switch to the caller's greenlet
  py::object context;              // context of the caller
  py::object wait;                 // wait(me, frame), if the executor handles waits; else the scheduler does
  py::object root;                 // code of the frame that calls bodies, if the scheduler still handles plain waits
  py::object foreign;              // tuple of names of modules; while none is imported, every wait is plain
  py::list seats;                  // at least one for each participant
  Py_ssize_t used = 0;             // number of used seats
  size_t begun = 0;                // number of participants that have begun
  bool is_ordered = false;         // only the hub chooses the next participant
  std::vector<PyObject*> seat_of;  // by participant, borrowed from seats
  PyObject* starting = nullptr;    // seat whose greenlet begins
  std::vector<size_t> suspended;   // positions in the order of suspension
  std::vector<size_t> batch;       // positions that may continue, the last one first
  std::vector<bool> is_suspended;

  bool has_failed() const { return rendezvous->failure() != Rendezvous::Failure::kNone; }
  bool is_pending(size_t position) const {
    return PyList_GET_ITEM(results.ptr(), static_cast<Py_ssize_t>(position)) == pending.ptr();
  }
};

struct SchedulerObject {
  PyObject_HEAD Scheduler* scheduler;
};

inline Scheduler& scheduler_of(PyObject* self) { return *reinterpret_cast<SchedulerObject*>(self)->scheduler; }

/// Ends the suspension of a participant, if it is suspended.
void unsuspend(Scheduler& scheduler, size_t position);

/// Returns the switch to the participant with the next turn, or to the hub if none can continue.
PyObject* next_switch(Scheduler& scheduler);

/// Suspends a participant, then returns next_switch().
PyObject* suspended_switch(Scheduler& scheduler, size_t position);

/// The switch of a seat.
inline PyObject* switch_of(PyObject* seat) { return PyTuple_GET_ITEM(seat, 0); }

/// Starts the next participant in the seat of the running greenlet and returns it; None if all have begun.
PyObject* begin_in(Scheduler& scheduler, PyObject* seat);

/// Binds the functions that collectives in bodies call.
void bind_scheduler_calls(py::module_& module);
void bind_scheduler(py::module_& module);

}  // namespace artifex_devices::bindings
