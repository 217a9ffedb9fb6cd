// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/spmd/rendezvous.h"
#include "artifex_devices/spmd/scheduler.h"
#include "known_collectives.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The participants of one session and the collectives that they called before, as Python objects. Needs the GIL.
/// Python switches to the fibers that the core's Scheduler chooses, with none of our frames on the stack.
struct Participants {
  explicit Participants(const py::object& bound)
      : owner(bound), rendezvous(bound.cast<Rendezvous*>()), scheduler(*rendezvous) {}

  py::object owner;  // keeps the rendezvous alive
  Rendezvous* rendezvous;
  Scheduler scheduler;
  py::object pending;  // marks a missing result
  py::object participant_class;
  py::list payloads;
  py::list results;
  std::vector<KnownCollective> collectives;
  std::vector<PreparedArgument> arguments;
  py::object plain;  // code of a body whose waits, if `root` called it, need no wait(me, frame)

  // Of one call, from open to close.
  py::object session;
  py::list outcomes;  // results of the bodies
  std::vector<py::object> objects;

  // Of the cooperative executor, from begin_turns to close. A fiber is (switch to its greenlet, [executor]).
  py::object executor;  // stored in each used fiber
  py::object caller;    // switch to the caller's greenlet
  py::object context;   // context of the caller
  py::object wait;      // wait(me, frame), if the executor handles waits; else the scheduler does
  py::object root;      // code of the frame that calls bodies, if the scheduler still handles plain waits
  py::object foreign;   // tuple of names of modules; while none is imported, every wait is plain
  py::list fibers;      // at least one for each participant
};

struct SchedulerObject {
  PyObject_HEAD Participants* participants;
};

inline Participants& participants_of(PyObject* self) { return *reinterpret_cast<SchedulerObject*>(self)->participants; }

/// The switch to a fiber that the scheduler chose, or to the caller of the session for none.
PyObject* switch_to(Participants& participants, FiberId fiber);

/// Binds the functions that collectives in bodies call.
[[gnu::cold]] void bind_scheduler_calls(py::module_& module);
[[gnu::cold]] void bind_scheduler(py::module_& module);

}  // namespace artifex_devices::bindings
