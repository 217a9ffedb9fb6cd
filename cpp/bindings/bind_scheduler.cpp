// SPDX-License-Identifier: Apache-2.0
#include <pybind11/critical_section.h>

#include <memory>

#include "cpython_calls.h"
#include "numpy_bridge.h"
#include "participant_object.h"
#include "scheduler.h"

namespace artifex_devices::bindings {
namespace {

PyObject* fiber_at(const Participants& all, FiberId fiber) { return PyList_GET_ITEM(all.fibers.ptr(), fiber.number()); }

void set_executor(const Participants& all, FiberId fiber, PyObject* executor) {
  check(PyList_SetItem(PyTuple_GET_ITEM(fiber_at(all, fiber), 1), 0, new_reference(executor)));
}

// Starts the next participant in a fiber, which is running, and returns it; None if no participant begins.
PyObject* begin_in(Participants& all, FiberId fiber) {
  const ParticipantId next = all.scheduler.upcoming();
  if (next.is_none()) Py_RETURN_NONE;
  PyObject* object = all.objects[static_cast<size_t>(next.number())].ptr();
  auto& me = *reinterpret_cast<ParticipantObject*>(object);
  const py::object context = checked(PyContext_Copy(all.context.ptr()));
  check(PyContext_Enter(context.ptr()));
  Py_XSETREF(me.context, new_reference(context.ptr()));
  const py::object token = checked(PyContextVar_Set(participant_variable, object));
  all.scheduler.begin(fiber);
  me.thread = PyThread_get_thread_ident();
  return new_reference(object);
}

// open(session, outcomes, rows): starts a call; rows has the arguments of each body.
PyObject* open_participants(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 3) throw py::type_error("open: expected session, outcomes and rows");
    Participants& all = participants_of(self);
    const auto members = static_cast<Py_ssize_t>(all.rendezvous->participants());
    if (!PyList_CheckExact(args[2]) || PyList_GET_SIZE(args[2]) != members)
      throw py::type_error("open: expected rows to be a list with the arguments of each participant");
    all.session = py::reinterpret_borrow<py::object>(args[0]);
    all.outcomes = py::reinterpret_borrow<py::list>(args[1]);
    all.rendezvous->restart();
    all.objects.clear();
    all.objects.reserve(static_cast<size_t>(members));
    auto* type = reinterpret_cast<PyTypeObject*>(all.participant_class.ptr());
    for (Py_ssize_t position = 0; position < members; ++position) {
      py::object result = checked(type->tp_alloc(type, 0));
      auto& me = *reinterpret_cast<ParticipantObject*>(result.ptr());
      me.session = new_reference(args[0]);
      me.owner = new_reference(self);
      me.args = checked(PySequence_GetItem(args[2], position)).release().ptr();
      me.code = new_reference(Py_None);
      me.position = position;
      all.objects.push_back(std::move(result));
    }
    Py_RETURN_NONE;
  });
}

// close(): ends the call; its participants cannot call collectives any more, and their objects are released.
PyObject* close_participants(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    const py::scoped_critical_section lock(
        self);  // threads of participants that the call left behind may be in `arrive`
    Participants& all = participants_of(self);
    for (const py::object& participant : all.objects) {
      auto& me = *reinterpret_cast<ParticipantObject*>(participant.ptr());
      me.has_ended = 1;
      Py_CLEAR(me.args);
    }
    const Py_ssize_t members = PyList_GET_SIZE(all.results.ptr());
    for (Py_ssize_t i = 0; i < members; ++i) {
      if (PyList_GET_ITEM(all.results.ptr(), i) != all.pending.ptr())
        check(PyList_SetItem(all.results.ptr(), i, new_reference(all.pending.ptr())));
      if (PyList_GET_ITEM(all.payloads.ptr(), i) != Py_None)
        check(PyList_SetItem(all.payloads.ptr(), i, new_reference(Py_None)));
    }
    for (PreparedArgument& each : all.arguments) each.forget_brought();
    all.scheduler.end();
    const std::vector<py::object> objects = std::move(all.objects);
    all.objects.clear();
    all.session = py::none();
    all.outcomes = py::list();
    all.executor = all.caller = all.context = py::object();
    all.wait = all.root = all.foreign = py::object();
    all.fibers = py::list();
    Py_RETURN_NONE;
  });
}

// begin_turns(executor, caller, context, fibers): starts the turns of the cooperative executor.
PyObject* begin_turns(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    Participants& all = participants_of(self);
    if (count != 4 || !PyList_CheckExact(args[3]) || PyList_GET_SIZE(args[3]) < all.rendezvous->participants())
      throw py::type_error("begin_turns: expected executor, caller, context and a fiber for each participant");
    all.executor = py::reinterpret_borrow<py::object>(args[0]);
    all.caller = py::reinterpret_borrow<py::object>(args[1]);
    all.context = py::reinterpret_borrow<py::object>(args[2]);
    all.fibers = py::reinterpret_borrow<py::list>(args[3]);
    all.scheduler.start();
    Py_RETURN_NONE;
  });
}

// end_turns(): clears the executor of each fiber.
PyObject* end_turns(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Participants& all = participants_of(self);
    for (const FiberId fiber : IdRange<FiberId>(all.scheduler.used_fibers())) set_executor(all, fiber, Py_None);
    Py_RETURN_NONE;
  });
}

// wait_by(wait, root, foreign): waits call wait(me, frame), except in plain bodies called by the frame of `root`, and
// while no module of `foreign` is imported.
PyObject* wait_by(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 3 || !PyTuple_CheckExact(args[2]))
      throw py::type_error("wait_by: expected wait, the code of the frame that calls bodies or None, and a tuple");
    participants_of(self).wait = py::reinterpret_borrow<py::object>(args[0]);
    participants_of(self).root = py::reinterpret_borrow<py::object>(args[1]);
    participants_of(self).foreign = py::reinterpret_borrow<py::object>(args[2]);
    Py_RETURN_NONE;
  });
}

// plain(code): sets the body whose waits need no wait(me, frame).
PyObject* know_plain(PyObject* self, PyObject* code) {
  participants_of(self).plain = py::reinterpret_borrow<py::object>(code);
  Py_RETURN_NONE;
}

PyObject* list_of(const std::vector<ParticipantId>& participants) {
  py::list result;
  for (const ParticipantId participant : participants) result.append(participant.number());
  return result.release().ptr();
}

// keep_order(): from now on only the caller chooses the next participant. Returns those already chosen, the next one
// last.
PyObject* keep_order(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* { return list_of(participants_of(self).scheduler.keep_order()); });
}

PyObject* enter(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Participants& all = participants_of(self);
    const FiberId fiber = all.scheduler.take_starting();
    if (fiber.is_none()) Py_RETURN_NONE;
    return begin_in(all, fiber);
  });
}

PyObject* leave_body(Participants& all, ParticipantObject& me, bool has_returned) {
  if (me.context != nullptr) {
    check(PyContext_Exit(me.context));
    Py_CLEAR(me.context);
  }
  const FiberId fiber = all.scheduler.leave(me.id(), has_returned);
  if (fiber.is_none()) Py_RETURN_NONE;  // the call has ended without it
  return begin_in(all, fiber);
}

// ended(me, outcome): its body returned `outcome`. Returns the participant that begins in its fiber, or None.
PyObject* ended(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("ended: expected a participant and what its body returned");
    Participants& all = participants_of(self);
    ParticipantObject& me = participant_at(args[0]);
    check(PyList_SetItem(all.outcomes.ptr(), me.position, new_reference(args[1])));
    return leave_body(all, me, true);
  });
}

// raised(me, is_own): its body raised, by itself or because of a failure elsewhere. Returns None: no participant
// begins.
PyObject* raised(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("raised: expected a participant and a bool");
    return leave_body(participants_of(self), participant_at(args[0]), args[1] != Py_True);
  });
}

// next(): returns the switch to the participant with the next turn.
PyObject* next_turn(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Participants& all = participants_of(self);
    return switch_to(all, all.scheduler.next());
  });
}

// suspend(me): it waits. Returns the switch to the participant with the next turn.
PyObject* suspend(PyObject* self, PyObject* me) {
  return translated([&]() -> PyObject* {
    Participants& all = participants_of(self);
    return switch_to(all, all.scheduler.suspend(participant_at(me).id()));
  });
}

// resumed(me): it has the turn again.
PyObject* resumed(PyObject* self, PyObject* me) {
  return translated([&]() -> PyObject* {
    participants_of(self).scheduler.resume(participant_at(me).id());
    Py_RETURN_NONE;
  });
}

// turn_of(position): returns the switch to a suspended participant.
PyObject* turn_of(PyObject* self, PyObject* position) {
  return translated([&]() -> PyObject* {
    const Py_ssize_t number = PyLong_AsSsize_t(position);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    Participants& all = participants_of(self);
    return switch_to(all, all.scheduler.fiber_of(ParticipantId(number)));
  });
}

PyObject* suspended_positions(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* { return list_of(participants_of(self).scheduler.suspended()); });
}

PyObject* list_participants(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    py::list result;
    for (const py::object& participant : participants_of(self).objects) result.append(participant);
    return result.release().ptr();
  });
}

PyTypeObject* scheduler_class = nullptr;

py::object make_scheduler(const py::object& rendezvous, const py::type& cls, const py::list& payloads,
                          const py::list& results, const py::object& pending) {
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls.ptr()), participant_class))
    throw py::type_error("new_scheduler: expected a class of participants");
  auto all = std::make_unique<Participants>(rendezvous);
  // Their addresses stay valid while Python runs.
  all->collectives.reserve(kKnownCollectives);
  all->arguments.reserve(kKnownCollectives);
  all->participant_class = cls;
  all->payloads = payloads;
  all->results = results;
  all->pending = pending;
  all->session = py::none();
  py::object self = checked(scheduler_class->tp_alloc(scheduler_class, 0));
  reinterpret_cast<SchedulerObject*>(self.ptr())->participants = all.release();
  return self;
}

int traverse_scheduler(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Participants* all = reinterpret_cast<SchedulerObject*>(self)->participants;
  if (all == nullptr) return 0;
  Py_VISIT(all->session.ptr());
  Py_VISIT(all->outcomes.ptr());
  Py_VISIT(all->executor.ptr());
  Py_VISIT(all->wait.ptr());
  for (const py::object& participant : all->objects) Py_VISIT(participant.ptr());
  for (const KnownCollective& each : all->collectives) Py_VISIT(each.collective.ptr());
  for (const PreparedArgument& each : all->arguments) {
    for (const PreparedArgument::Brought& one : each.brought) Py_VISIT(one.argument.ptr());
  }
  return 0;
}

int clear_scheduler(PyObject* self) {
  Participants* all = reinterpret_cast<SchedulerObject*>(self)->participants;
  if (all == nullptr) return 0;
  const py::object session = std::move(all->session), executor = std::move(all->executor), wait = std::move(all->wait);
  const std::vector<py::object> objects = std::move(all->objects);
  const std::vector<KnownCollective> collectives = std::move(all->collectives);
  all->objects.clear();
  all->collectives.clear();
  for (PreparedArgument& each : all->arguments) each.forget_brought();
  return 0;
}

void free_scheduler(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<SchedulerObject*>(self)->participants;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

PyObject* switch_to(Participants& all, FiberId fiber) {
  if (fiber.is_none()) return new_reference(all.caller.ptr());
  if (all.scheduler.is_starting(fiber)) set_executor(all, fiber, all.executor.ptr());
  return new_reference(PyTuple_GET_ITEM(fiber_at(all, fiber), 0));
}

void bind_scheduler(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  static PyMethodDef scheduler_methods[] = {
      {"open", fast(&open_participants), METH_FASTCALL,
       "open(self: Scheduler, session: object, outcomes: list, rows: list) -> None\n\nStarts a call."},
      {"close", &close_participants, METH_NOARGS,
       "close(self: Scheduler) -> None\n\nEnds the call: its participants cannot call collectives any more, and their "
       "objects are released."},
      {"participants", &list_participants, METH_NOARGS,
       "participants(self: Scheduler) -> list\n\nReturns the participants of the call; none after its end."},
      {"know", fast(&know), METH_FASTCALL,
       "know(self: Scheduler, operation: str, axis_name: object, x: object, argument: object, options: tuple, collective: "
       "object, groups: list, signature: int, reduction: str) -> None\n\nMakes arrive handle arrays like x, with one group "
       "for each participant or one for all. `reduction` is \"\" unless all members get the total of their blocks."},
      {"prepared", fast(&prepared), METH_FASTCALL,
       "prepared(self: Scheduler, me: object, operation: str, groups: object, argument: object) -> object\n\n"
       "Returns the prepared form of equal indices, or None."},
      {"prepare", fast(&prepare), METH_FASTCALL,
       "prepare(self: Scheduler, me: object, operation: str, groups: object, argument: object, indices: object, prepared: "
       "object) -> object\n\nStores the prepared form of an argument. Returns it, or the stored form of equal indices."},
      {"wait_by", fast(&wait_by), METH_FASTCALL,
       "wait_by(self: Scheduler, wait: object, root: object, foreign: tuple) -> None\n\nMakes waits call wait(me, frame), "
       "unless they are plain. All are plain while no module of `foreign` is imported."},
      {"plain", &know_plain, METH_O,
       "plain(self: Scheduler, code: object) -> None\n\nMakes waits of this body plain where the code `root` calls it."},
      {"begin_turns", fast(&begin_turns), METH_FASTCALL,
       "begin_turns(self: Scheduler, executor: object, caller: object, context: object, fibers: list) -> None\n\n"
       "Starts turns of participants that share a thread. A fiber is (switch, [executor])."},
      {"end_turns", &end_turns, METH_NOARGS,
       "end_turns(self: Scheduler) -> None\n\nClears the executor of each fiber."},
      {"keep_order", &keep_order, METH_NOARGS,
       "keep_order(self: Scheduler) -> list\n\nMakes only the caller choose the next participant. Returns those already "
       "chosen, the next one last."},
      {"enter", &enter, METH_NOARGS,
       "enter(self: Scheduler) -> object\n\nReturns the participant that begins in the fiber of the calling greenlet, or "
       "None."},
      {"ended", fast(&ended), METH_FASTCALL,
       "ended(self: Scheduler, me: object, outcome: object) -> object\n\nReturns the participant that begins in its fiber, "
       "or None."},
      {"raised", fast(&raised), METH_FASTCALL,
       "raised(self: Scheduler, me: object, is_own: bool) -> object\n\n"
       "Records that the participant's body raised. Returns None, because no participant begins after a "
       "failure."},
      {"next", &next_turn, METH_NOARGS,
       "next(self: Scheduler) -> object\n\nReturns the switch to the participant with the next turn, or to the caller."},
      {"suspend", &suspend, METH_O,
       "suspend(self: Scheduler, me: object) -> object\n\n"
       "Suspends the participant. Returns the switch to the participant with the next turn, or to the "
       "caller."},
      {"resumed", &resumed, METH_O,
       "resumed(self: Scheduler, me: object) -> None\n\n"
       "Records that the participant has the turn again."},
      {"turn_of", &turn_of, METH_O,
       "turn_of(self: Scheduler, position: int) -> object\n\nReturns the switch to a participant that has begun."},
      {"suspended", &suspended_positions, METH_NOARGS,
       "suspended(self: Scheduler) -> list\n\nReturns the positions of the waiting participants, in the order of "
       "suspension."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot scheduler_slots[] = {
      {Py_tp_doc, const_cast<char*>("The participants of a session; see new_scheduler.")},
      {Py_tp_methods, scheduler_methods},
      {Py_tp_traverse, slot(&traverse_scheduler)},
      {Py_tp_clear, slot(&clear_scheduler)},
      {Py_tp_dealloc, slot(&free_scheduler)},
      {0, nullptr}};
  static PyType_Spec scheduler_spec{"artifex_devices._core.internal.Scheduler", sizeof(SchedulerObject), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    scheduler_slots};

  bind_participant(module);
  scheduler_class = make_class(internal, scheduler_spec);
  internal.def("new_scheduler", &make_scheduler, py::arg("rendezvous"), py::arg("participant_class"),
               py::arg("payloads"), py::arg("results"), py::arg("pending"),
               "Creates the scheduler of a session's participants, with their payloads and results by position, "
               "`pending` without a result.");
  bind_scheduler_calls(module);
}

}  // namespace artifex_devices::bindings
