// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "artifex_devices/spmd/rendezvous.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

inline constexpr size_t kKinds = 8;  // more are looked up in Python

/// A kind of collective of one ndarray without options that the program has met before.
struct Kind {
  py::object operation;
  py::object axis_name;
  py::object dtype;
  std::vector<py::ssize_t> shape;
  py::object meeting;
  std::vector<int64_t> groups;  // by participant, or one for all
  int64_t signature;
};

/// The participants of one program: their states, who has the turn in the cooperative executor, and the kinds of
/// collectives that were met before. All of it needs the GIL. It only says whose turn it is; Python switches to it,
/// with none of our frames on the stack.
struct Scheduler {
  py::object owner;  // keeps the rendezvous
  Rendezvous* rendezvous;
  py::object pending;  // stands for a result that is not there
  py::object participant_class;
  py::list payloads;
  py::list results;
  std::vector<Kind> kinds;
  py::object plain;  // code of a body whose own waits, when `root` called it, need not be looked at

  // Of one call, from open to close.
  py::object program;
  py::list outcomes;  // what bodies returned
  std::vector<py::object> participants;

  // Of the cooperative executor, from begin_turns to close. A seat is (the switch to its greenlet, [who hosts it]).
  py::object host;                 // what a greenlet is told that gets a seat
  py::object hub;                  // the switch to the caller's greenlet
  py::object context;              // of the caller
  py::object wait;                 // wait(me, frame), where the executor looks at each wait; else waits are ours
  py::object root;                 // code of the frame that calls bodies, where plain waits are ours all the same
  py::list seats;                  // one a participant at least
  Py_ssize_t used = 0;             // so many of them
  size_t begun = 0;                // so many participants
  bool is_ordered = false;         // the hub alone says who goes on
  std::vector<PyObject*> seat_of;  // by participant, borrowed from seats
  PyObject* starting = nullptr;    // the seat whose greenlet begins
  std::vector<size_t> suspended;   // in the order of their suspension
  std::vector<size_t> batch;       // may go on, the last one first
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

/// No longer waits, if it does.
void unsuspend(Scheduler& scheduler, size_t position);

/// The switch to whoever has the next turn; to the hub where nobody can be told.
PyObject* next_switch(Scheduler& scheduler);

/// The same for a participant that waits from now on.
PyObject* suspended_switch(Scheduler& scheduler, size_t position);

/// The switch of a seat.
inline PyObject* switch_of(PyObject* seat) { return PyTuple_GET_ITEM(seat, 0); }

/// Lets the next participant begin in a seat, whose greenlet is running; None where there is none.
PyObject* begin_in(Scheduler& scheduler, PyObject* seat);

/// What bodies' collectives call.
void bind_scheduler_calls(py::module_& module);
void bind_scheduler(py::module_& module);

}  // namespace artifex_devices::bindings
