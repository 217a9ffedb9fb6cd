// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cpython_calls.h"
#include "numpy_bridge.h"
#include "participant_object.h"
#include "scheduler.h"

namespace artifex_devices::bindings {
namespace {

// open(program, outcomes, rows): starts a call; rows has the arguments of each body.
PyObject* open_scheduler(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 3) throw py::type_error("open: expected program, outcomes and rows");
    Scheduler& scheduler = scheduler_of(self);
    const auto members = static_cast<Py_ssize_t>(scheduler.rendezvous->participants());
    if (!PyList_CheckExact(args[2]) || PyList_GET_SIZE(args[2]) != members)
      throw py::type_error("open: expected rows to be a list with the arguments of each participant");
    scheduler.program = py::reinterpret_borrow<py::object>(args[0]);
    scheduler.outcomes = py::reinterpret_borrow<py::list>(args[1]);
    scheduler.rendezvous->restart();
    scheduler.participants.clear();
    scheduler.participants.reserve(static_cast<size_t>(members));
    auto* type = reinterpret_cast<PyTypeObject*>(scheduler.participant_class.ptr());
    for (Py_ssize_t position = 0; position < members; ++position) {
      py::object result = checked(type->tp_alloc(type, 0));
      auto& me = *reinterpret_cast<ParticipantObject*>(result.ptr());
      me.program = new_reference(args[0]);
      me.owner = new_reference(self);
      me.args = new_reference(PyList_GET_ITEM(args[2], position));
      me.position = position;
      scheduler.participants.push_back(std::move(result));
    }
    Py_RETURN_NONE;
  });
}

// close(): ends the call; its participants cannot call collectives any more, and their objects are released.
PyObject* close_scheduler(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Scheduler& scheduler = scheduler_of(self);
    for (const py::object& participant : scheduler.participants) {
      auto& me = *reinterpret_cast<ParticipantObject*>(participant.ptr());
      me.has_ended = 1;
      Py_CLEAR(me.args);
    }
    const Py_ssize_t members = PyList_GET_SIZE(scheduler.results.ptr());
    for (Py_ssize_t i = 0; i < members; ++i) {
      if (PyList_GET_ITEM(scheduler.results.ptr(), i) != scheduler.pending.ptr())
        check(PyList_SetItem(scheduler.results.ptr(), i, new_reference(scheduler.pending.ptr())));
      if (PyList_GET_ITEM(scheduler.payloads.ptr(), i) != Py_None)
        check(PyList_SetItem(scheduler.payloads.ptr(), i, new_reference(Py_None)));
    }
    const std::vector<py::object> participants = std::move(scheduler.participants);
    scheduler.participants.clear();
    scheduler.program = py::none();
    scheduler.outcomes = py::list();
    scheduler.host = scheduler.hub = scheduler.context = py::object();
    scheduler.wait = scheduler.root = scheduler.foreign = py::object();
    scheduler.seats = py::list();
    scheduler.seat_of.clear();
    scheduler.starting = nullptr;
    scheduler.suspended.clear();
    scheduler.batch.clear();
    scheduler.is_suspended.clear();
    Py_RETURN_NONE;
  });
}

// begin_turns(host, hub, context, seats): starts the turns of the cooperative executor.
PyObject* begin_turns(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 4 || !PyList_CheckExact(args[3]))
      throw py::type_error("begin_turns: expected host, hub, context, seats");
    Scheduler& scheduler = scheduler_of(self);
    scheduler.host = py::reinterpret_borrow<py::object>(args[0]);
    scheduler.hub = py::reinterpret_borrow<py::object>(args[1]);
    scheduler.context = py::reinterpret_borrow<py::object>(args[2]);
    scheduler.seats = py::reinterpret_borrow<py::list>(args[3]);
    scheduler.used = 0;
    scheduler.begun = 0;
    scheduler.is_ordered = false;
    scheduler.suspended.reserve(
        scheduler.participants.size());  // so that no turn allocates: a waiting participant must get its turn
    scheduler.batch.reserve(scheduler.participants.size());
    scheduler.seat_of.assign(scheduler.participants.size(), nullptr);
    scheduler.is_suspended.assign(scheduler.participants.size(), false);
    Py_RETURN_NONE;
  });
}

// end_turns(): clears the host of each seat.
PyObject* end_turns(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Scheduler& scheduler = scheduler_of(self);
    for (Py_ssize_t i = 0; i < scheduler.used; ++i) {
      PyObject* box = PyTuple_GET_ITEM(PyList_GET_ITEM(scheduler.seats.ptr(), i), 1);
      check(PyList_SetItem(box, 0, new_reference(Py_None)));
    }
    Py_RETURN_NONE;
  });
}

// wait_by(wait, root, foreign): waits call wait(me, frame), except in plain bodies called by the frame of `root`, and
// while no module of `foreign` is imported.
PyObject* wait_by(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 3 || !PyTuple_CheckExact(args[2]))
      throw py::type_error("wait_by: expected wait, the code of the frame that calls bodies or None, and a tuple");
    scheduler_of(self).wait = py::reinterpret_borrow<py::object>(args[0]);
    scheduler_of(self).root = py::reinterpret_borrow<py::object>(args[1]);
    scheduler_of(self).foreign = py::reinterpret_borrow<py::object>(args[2]);
    Py_RETURN_NONE;
  });
}

// plain(code): sets the body whose waits need no wait(me, frame).
PyObject* know_plain(PyObject* self, PyObject* code) {
  scheduler_of(self).plain = py::reinterpret_borrow<py::object>(code);
  Py_RETURN_NONE;
}

// keep_order(): from now on only the hub chooses the next participant. Returns those already chosen, the next one last.
PyObject* keep_order(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Scheduler& scheduler = scheduler_of(self);
    scheduler.is_ordered = true;
    py::list batch;
    for (const size_t position : scheduler.batch) batch.append(position);
    scheduler.batch.clear();
    return batch.release().ptr();
  });
}

PyObject* enter(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Scheduler& scheduler = scheduler_of(self);
    PyObject* seat = scheduler.starting;
    if (seat == nullptr) Py_RETURN_NONE;
    scheduler.starting = nullptr;
    return begin_in(scheduler, seat);
  });
}

PyObject* leave_body(Scheduler& scheduler, ParticipantObject& me, bool has_returned) {
  const auto position = static_cast<size_t>(me.position);
  unsuspend(scheduler, position);
  if (me.context != nullptr) {
    check(PyContext_Exit(me.context));
    Py_CLEAR(me.context);
  }
  if (position >= scheduler.seat_of.size()) Py_RETURN_NONE;  // the call has ended without it
  if (has_returned)
    scheduler.rendezvous->finished(me.position);
  else
    scheduler.rendezvous->raised(me.position);
  return begin_in(scheduler, scheduler.seat_of[position]);
}

// ended(me, outcome): its body returned `outcome`. Returns the participant that begins in its seat, or None.
PyObject* ended(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("ended: expected a participant and what its body returned");
    Scheduler& scheduler = scheduler_of(self);
    ParticipantObject& me = participant_at(args[0]);
    check(PyList_SetItem(scheduler.outcomes.ptr(), me.position, new_reference(args[1])));
    return leave_body(scheduler, me, true);
  });
}

// raised(me, is_own): its body raised, by itself or because of a failure elsewhere. Returns None: no participant
// begins.
PyObject* raised(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("raised: expected a participant and a bool");
    return leave_body(scheduler_of(self), participant_at(args[0]), args[1] != Py_True);
  });
}

// next(): returns the switch to the participant with the next turn.
PyObject* next_turn(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* { return next_switch(scheduler_of(self)); });
}

// suspend(me): it waits. Returns the switch to the participant with the next turn.
PyObject* suspend(PyObject* self, PyObject* me) {
  return translated([&]() -> PyObject* {
    return suspended_switch(scheduler_of(self), static_cast<size_t>(participant_at(me).position));
  });
}

// resumed(me): it has the turn again.
PyObject* resumed(PyObject* self, PyObject* me) {
  return translated([&]() -> PyObject* {
    unsuspend(scheduler_of(self), static_cast<size_t>(participant_at(me).position));
    Py_RETURN_NONE;
  });
}

// turn_of(position): returns the switch to a suspended participant.
PyObject* turn_of(PyObject* self, PyObject* position) {
  return translated([&]() -> PyObject* {
    const Py_ssize_t number = PyLong_AsSsize_t(position);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    return new_reference(switch_of(scheduler_of(self).seat_of.at(static_cast<size_t>(number))));
  });
}

PyObject* suspended_positions(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    py::list result;
    for (const size_t position : scheduler_of(self).suspended) result.append(position);
    return result.release().ptr();
  });
}

PyObject* list_participants(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    py::list result;
    for (const py::object& participant : scheduler_of(self).participants) result.append(participant);
    return result.release().ptr();
  });
}

// know(operation, axis_name, x, meeting, groups, signature): from now on `arrive` handles this operation over these
// axes for arrays like x, with one group for each participant or one for all.
PyObject* know(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 6) throw py::type_error("know: expected operation, axis_name, x, meeting, groups and signature");
    Scheduler& scheduler = scheduler_of(self);
    const NdarrayKind kind = kind_of_ndarray(args[2]);
    if (scheduler.kinds.size() >= kKinds || kind.dtype == nullptr) Py_RETURN_NONE;
    std::vector<int64_t> groups;
    for (const py::handle group : py::reinterpret_borrow<py::list>(args[4])) groups.push_back(group.cast<int64_t>());
    scheduler.kinds.push_back({py::reinterpret_borrow<py::object>(args[0]),
                               py::reinterpret_borrow<py::object>(args[1]),
                               py::reinterpret_borrow<py::object>(kind.dtype),
                               {kind.shape.begin(), kind.shape.end()},
                               py::reinterpret_borrow<py::object>(args[3]),
                               std::move(groups),
                               py::handle(args[5]).cast<int64_t>()});
    Py_RETURN_NONE;
  });
}

PyTypeObject* scheduler_class = nullptr;

py::object make_scheduler(const py::object& rendezvous, const py::type& cls, const py::list& payloads,
                          const py::list& results, const py::object& pending) {
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls.ptr()), participant_class))
    throw py::type_error("_new_stage: expected a class of participants");
  auto scheduler = std::make_unique<Scheduler>();
  scheduler->kinds.reserve(kKinds);  // their addresses stay valid while Python runs
  scheduler->owner = rendezvous;
  scheduler->rendezvous = rendezvous.cast<Rendezvous*>();
  scheduler->participant_class = cls;
  scheduler->payloads = payloads;
  scheduler->results = results;
  scheduler->pending = pending;
  scheduler->program = py::none();
  py::object self = checked(scheduler_class->tp_alloc(scheduler_class, 0));
  reinterpret_cast<SchedulerObject*>(self.ptr())->scheduler = scheduler.release();
  return self;
}

int traverse_scheduler(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Scheduler* scheduler = reinterpret_cast<SchedulerObject*>(self)->scheduler;
  if (scheduler == nullptr) return 0;
  Py_VISIT(scheduler->program.ptr());
  Py_VISIT(scheduler->outcomes.ptr());
  Py_VISIT(scheduler->host.ptr());
  Py_VISIT(scheduler->wait.ptr());
  for (const py::object& participant : scheduler->participants) Py_VISIT(participant.ptr());
  for (const Kind& kind : scheduler->kinds) Py_VISIT(kind.meeting.ptr());
  return 0;
}

int clear_scheduler(PyObject* self) {
  Scheduler* scheduler = reinterpret_cast<SchedulerObject*>(self)->scheduler;
  if (scheduler == nullptr) return 0;
  const py::object program = std::move(scheduler->program), host = std::move(scheduler->host),
                   wait = std::move(scheduler->wait);
  const std::vector<py::object> participants = std::move(scheduler->participants);
  const std::vector<Kind> kinds = std::move(scheduler->kinds);
  scheduler->participants.clear();
  scheduler->kinds.clear();
  return 0;
}

void free_scheduler(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<SchedulerObject*>(self)->scheduler;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

void bind_scheduler(py::module_& module) {
  static PyMethodDef scheduler_methods[] = {
      {"open", fast(&open_scheduler), METH_FASTCALL,
       "open(self: _Stage, program: object, outcomes: list, rows: list) -> None\n\nStarts a call."},
      {"close", &close_scheduler, METH_NOARGS,
       "close(self: _Stage) -> None\n\nEnds the call: its participants cannot call collectives any more, and their "
       "objects are released."},
      {"participants", &list_participants, METH_NOARGS,
       "participants(self: _Stage) -> list\n\nReturns the participants of the call; none after its end."},
      {"know", fast(&know), METH_FASTCALL,
       "know(self: _Stage, operation: str, axis_name: object, x: object, meeting: object, groups: list, signature: "
       "int) -> None\n\nMakes _arrive handle arrays like x, with one group for each participant or one for all."},
      {"wait_by", fast(&wait_by), METH_FASTCALL,
       "wait_by(self: _Stage, wait: object, root: object, foreign: tuple) -> None\n\nMakes waits call wait(me, frame), "
       "unless they are plain. All are plain while no module of `foreign` is imported."},
      {"plain", &know_plain, METH_O,
       "plain(self: _Stage, code: object) -> None\n\nMakes waits of this body plain where the code `root` calls it."},
      {"begin_turns", fast(&begin_turns), METH_FASTCALL,
       "begin_turns(self: _Stage, host: object, hub: object, context: object, seats: list) -> None\n\n"
       "Starts turns of participants that share a thread. A seat is (switch, [host])."},
      {"end_turns", &end_turns, METH_NOARGS, "end_turns(self: _Stage) -> None\n\nClears the host of each seat."},
      {"keep_order", &keep_order, METH_NOARGS,
       "keep_order(self: _Stage) -> list\n\nMakes only the hub choose the next participant. Returns those already "
       "chosen, the next one last."},
      {"enter", &enter, METH_NOARGS,
       "enter(self: _Stage) -> object\n\nReturns the participant that begins in the seat of the calling greenlet, or "
       "None."},
      {"ended", fast(&ended), METH_FASTCALL,
       "ended(self: _Stage, me: object, outcome: object) -> object\n\nReturns the participant that begins in its seat, "
       "or None."},
      {"raised", fast(&raised), METH_FASTCALL,
       "raised(self: _Stage, me: object, is_own: bool) -> object\n\nReturns None, as no participant begins after a "
       "failure."},
      {"next", &next_turn, METH_NOARGS,
       "next(self: _Stage) -> object\n\nReturns the switch to the participant with the next turn, or to the hub."},
      {"suspend", &suspend, METH_O,
       "suspend(self: _Stage, me: object) -> object\n\nSuspends it and returns the switch to the participant with the "
       "next turn, or to the hub."},
      {"resumed", &resumed, METH_O, "resumed(self: _Stage, me: object) -> None\n\nReports that it has the turn again."},
      {"turn_of", &turn_of, METH_O,
       "turn_of(self: _Stage, position: int) -> object\n\nReturns the switch to a participant that has begun."},
      {"suspended", &suspended_positions, METH_NOARGS,
       "suspended(self: _Stage) -> list\n\nReturns the positions of the waiting participants, in the order of "
       "suspension."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot scheduler_slots[] = {
      {Py_tp_doc, const_cast<char*>("The participants of a program; see _new_stage.")},
      {Py_tp_methods, scheduler_methods},
      {Py_tp_traverse, slot(&traverse_scheduler)},
      {Py_tp_clear, slot(&clear_scheduler)},
      {Py_tp_dealloc, slot(&free_scheduler)},
      {0, nullptr}};
  static PyType_Spec scheduler_spec{"artifex_devices._core._Stage", sizeof(SchedulerObject), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    scheduler_slots};

  bind_participant(module);
  scheduler_class = make_class(module, scheduler_spec);
  module.def("_new_stage", &make_scheduler, py::arg("rendezvous"), py::arg("participant_class"), py::arg("payloads"),
             py::arg("results"), py::arg("pending"),
             "Creates the scheduler of a program's participants, with their payloads and results by position, "
             "`pending` without a result.");
  bind_scheduler_calls(module);
}

}  // namespace artifex_devices::bindings
