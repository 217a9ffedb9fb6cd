// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "ndarray_kind.h"
#include "participant_object.h"
#include "plain_calls.h"
#include "stage.h"

namespace artifex_devices::bindings {
namespace {

// open(program, outcomes, rows): a new call begins; rows has the arguments of each body.
PyObject* open_stage(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 3) throw py::type_error("open: expected program, outcomes and rows");
    Stage& stage = stage_of(self);
    const auto members = static_cast<Py_ssize_t>(stage.rendezvous->participants());
    if (!PyList_CheckExact(args[2]) || PyList_GET_SIZE(args[2]) != members)
      throw py::type_error("open: expected rows to be a list with the arguments of each participant");
    stage.program = py::reinterpret_borrow<py::object>(args[0]);
    stage.outcomes = py::reinterpret_borrow<py::list>(args[1]);
    stage.rendezvous->begin_anew();
    stage.participants.clear();
    stage.participants.reserve(static_cast<size_t>(members));
    auto* type = reinterpret_cast<PyTypeObject*>(stage.participant_class.ptr());
    for (Py_ssize_t position = 0; position < members; ++position) {
      py::object made = checked(type->tp_alloc(type, 0));
      auto& me = *reinterpret_cast<ParticipantObject*>(made.ptr());
      me.program = given(args[0]);
      me.owner = given(self);
      me.args = given(PyList_GET_ITEM(args[2], position));
      me.position = position;
      stage.participants.push_back(std::move(made));
    }
    Py_RETURN_NONE;
  });
}

// close(): the participants cannot meet any more; nothing of theirs is kept.
PyObject* close_stage(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Stage& stage = stage_of(self);
    for (const py::object& participant : stage.participants) {
      auto& me = *reinterpret_cast<ParticipantObject*>(participant.ptr());
      me.has_ended = 1;
      Py_CLEAR(me.args);
    }
    const Py_ssize_t members = PyList_GET_SIZE(stage.results.ptr());
    for (Py_ssize_t i = 0; i < members; ++i) {
      if (PyList_GET_ITEM(stage.results.ptr(), i) != stage.pending.ptr())
        check(PyList_SetItem(stage.results.ptr(), i, given(stage.pending.ptr())));
      if (PyList_GET_ITEM(stage.payloads.ptr(), i) != Py_None)
        check(PyList_SetItem(stage.payloads.ptr(), i, given(Py_None)));
    }
    const std::vector<py::object> participants = std::move(stage.participants);
    stage.participants.clear();
    stage.program = py::none();
    stage.outcomes = py::list();
    stage.host = stage.hub = stage.context = stage.wait = stage.root = py::object();
    stage.seats = py::list();
    stage.seat_of.clear();
    stage.starting = nullptr;
    stage.suspended.clear();
    stage.batch.clear();
    stage.is_suspended.clear();
    Py_RETURN_NONE;
  });
}

// begin_turns(host, hub, context, seats): the cooperative executor lets participants run.
PyObject* begin_turns(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 4 || !PyList_CheckExact(args[3]))
      throw py::type_error("begin_turns: expected host, hub, context, seats");
    Stage& stage = stage_of(self);
    stage.host = py::reinterpret_borrow<py::object>(args[0]);
    stage.hub = py::reinterpret_borrow<py::object>(args[1]);
    stage.context = py::reinterpret_borrow<py::object>(args[2]);
    stage.seats = py::reinterpret_borrow<py::list>(args[3]);
    stage.used = 0;
    stage.begun = 0;
    stage.is_ordered = false;
    stage.suspended.reserve(stage.participants.size());  // so that no turn asks for memory: whoever waits must get one
    stage.batch.reserve(stage.participants.size());
    stage.seat_of.assign(stage.participants.size(), nullptr);
    stage.is_suspended.assign(stage.participants.size(), false);
    Py_RETURN_NONE;
  });
}

// end_turns(): the seats name their host no more.
PyObject* end_turns(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Stage& stage = stage_of(self);
    for (Py_ssize_t i = 0; i < stage.used; ++i) {
      PyObject* box = PyTuple_GET_ITEM(PyList_GET_ITEM(stage.seats.ptr(), i), 1);
      check(PyList_SetItem(box, 0, given(Py_None)));
    }
    Py_RETURN_NONE;
  });
}

// wait_by(wait, root): waits are what wait(me, frame) does, but for those of plain bodies that the frame of `root`
// called.
PyObject* wait_by(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("wait_by: expected wait and the code of the frame that calls bodies, or None");
    stage_of(self).wait = py::reinterpret_borrow<py::object>(args[0]);
    stage_of(self).root = py::reinterpret_borrow<py::object>(args[1]);
    Py_RETURN_NONE;
  });
}

// plain(code): a body whose own waits need not be looked at.
PyObject* know_plain(PyObject* self, PyObject* code) {
  stage_of(self).plain = py::reinterpret_borrow<py::object>(code);
  Py_RETURN_NONE;
}

// keep_order(): from now on the hub alone says who goes on; those that it had let go on, the next one last.
PyObject* keep_order(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Stage& stage = stage_of(self);
    stage.is_ordered = true;
    py::list batch;
    for (const size_t position : stage.batch) batch.append(position);
    stage.batch.clear();
    return batch.release().ptr();
  });
}

PyObject* enter(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    Stage& stage = stage_of(self);
    PyObject* seat = stage.starting;
    if (seat == nullptr) Py_RETURN_NONE;
    stage.starting = nullptr;
    return begin_in(stage, seat);
  });
}

PyObject* leave_body(Stage& stage, ParticipantObject& me, bool has_returned) {
  const auto position = static_cast<size_t>(me.position);
  unsuspend(stage, position);
  if (me.context != nullptr) {
    check(PyContext_Exit(me.context));
    Py_CLEAR(me.context);
  }
  if (position >= stage.seat_of.size()) Py_RETURN_NONE;  // the call has ended without it
  if (has_returned)
    stage.rendezvous->finished(me.position);
  else
    stage.rendezvous->raised(me.position);
  return begin_in(stage, stage.seat_of[position]);
}

// ended(me, outcome): its body returned that; who begins in its seat, or None.
PyObject* ended(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("ended: expected a participant and what its body returned");
    Stage& stage = stage_of(self);
    ParticipantObject& me = participant_at(args[0]);
    check(PyList_SetItem(stage.outcomes.ptr(), me.position, given(args[1])));
    return leave_body(stage, me, true);
  });
}

// raised(me, is_first): its body raised; whether that is a failure of its own. None, as nobody begins any more.
PyObject* raised(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 2) throw py::type_error("raised: expected a participant and a bool");
    return leave_body(stage_of(self), participant_at(args[0]), args[1] != Py_True);
  });
}

// next(): the switch to whoever has the next turn.
PyObject* next_turn(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* { return next_switch(stage_of(self)); });
}

// suspend(me): it waits; the switch to whoever has the next turn.
PyObject* suspend(PyObject* self, PyObject* me) {
  return translated([&]() -> PyObject* {
    return suspended_switch(stage_of(self), static_cast<size_t>(participant_at(me).position));
  });
}

// resumed(me): it has the turn again.
PyObject* resumed(PyObject* self, PyObject* me) {
  return translated([&]() -> PyObject* {
    unsuspend(stage_of(self), static_cast<size_t>(participant_at(me).position));
    Py_RETURN_NONE;
  });
}

// turn_of(position): the switch to a participant that is suspended.
PyObject* turn_of(PyObject* self, PyObject* position) {
  return translated([&]() -> PyObject* {
    const Py_ssize_t number = PyLong_AsSsize_t(position);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    return given(switch_of(stage_of(self).seat_of.at(static_cast<size_t>(number))));
  });
}

PyObject* suspended_positions(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    py::list made;
    for (const size_t position : stage_of(self).suspended) made.append(position);
    return made.release().ptr();
  });
}

PyObject* list_participants(PyObject* self, PyObject*) {
  return translated([&]() -> PyObject* {
    py::list made;
    for (const py::object& participant : stage_of(self).participants) made.append(participant);
    return made.release().ptr();
  });
}

// know(operation, axis_name, x, meeting, groups, signature): from now on `arrive` answers for this operation over these
// axes with arrays like x; one group a participant, or one for all.
PyObject* know(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 6) throw py::type_error("know: expected operation, axis_name, x, meeting, groups and signature");
    Stage& stage = stage_of(self);
    const NdarrayKind kind = kind_of_ndarray(args[2]);
    if (stage.kinds.size() >= kKinds || kind.dtype == nullptr) Py_RETURN_NONE;
    std::vector<int64_t> groups;
    for (const py::handle group : py::reinterpret_borrow<py::list>(args[4])) groups.push_back(group.cast<int64_t>());
    stage.kinds.push_back({py::reinterpret_borrow<py::object>(args[0]),
                           py::reinterpret_borrow<py::object>(args[1]),
                           py::reinterpret_borrow<py::object>(kind.dtype),
                           {kind.shape.begin(), kind.shape.end()},
                           py::reinterpret_borrow<py::object>(args[3]),
                           std::move(groups),
                           py::handle(args[5]).cast<int64_t>()});
    Py_RETURN_NONE;
  });
}

PyTypeObject* stage_class = nullptr;

py::object make_stage(const py::object& rendezvous, const py::type& cls, const py::list& payloads,
                      const py::list& results, const py::object& pending) {
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls.ptr()), participant_class))
    throw py::type_error("_new_stage: expected a class of participants");
  auto stage = std::make_unique<Stage>();
  stage->kinds.reserve(kKinds);  // they stay where they are while Python runs in between
  stage->owner = rendezvous;
  stage->rendezvous = rendezvous.cast<Rendezvous*>();
  stage->participant_class = cls;
  stage->payloads = payloads;
  stage->results = results;
  stage->pending = pending;
  stage->program = py::none();
  py::object self = checked(stage_class->tp_alloc(stage_class, 0));
  reinterpret_cast<StageObject*>(self.ptr())->stage = stage.release();
  return self;
}

int traverse_stage(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Stage* stage = reinterpret_cast<StageObject*>(self)->stage;
  if (stage == nullptr) return 0;
  Py_VISIT(stage->program.ptr());
  Py_VISIT(stage->outcomes.ptr());
  Py_VISIT(stage->host.ptr());
  Py_VISIT(stage->wait.ptr());
  for (const py::object& participant : stage->participants) Py_VISIT(participant.ptr());
  for (const Kind& kind : stage->kinds) Py_VISIT(kind.meeting.ptr());
  return 0;
}

int clear_stage(PyObject* self) {
  Stage* stage = reinterpret_cast<StageObject*>(self)->stage;
  if (stage == nullptr) return 0;
  const py::object program = std::move(stage->program), host = std::move(stage->host), wait = std::move(stage->wait);
  const std::vector<py::object> participants = std::move(stage->participants);
  const std::vector<Kind> kinds = std::move(stage->kinds);
  stage->participants.clear();
  stage->kinds.clear();
  return 0;
}

void free_stage(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<StageObject*>(self)->stage;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

void bind_stage(py::module_& module) {
  static PyMethodDef stage_methods[] = {
      {"open", fast(&open_stage), METH_FASTCALL,
       "open(self: _Stage, program: object, outcomes: list, rows: list) -> None\n\nA call begins."},
      {"close", &close_stage, METH_NOARGS,
       "close(self: _Stage) -> None\n\nThe participants cannot meet any more; nothing of theirs is kept."},
      {"participants", &list_participants, METH_NOARGS,
       "participants(self: _Stage) -> list\n\nThe participants of the call; none after its end."},
      {"know", fast(&know), METH_FASTCALL,
       "know(self: _Stage, operation: str, axis_name: object, x: object, meeting: object, groups: list, signature: "
       "int) -> None\n\nFrom now on _arrive answers for arrays like x; one group a participant, or one."},
      {"wait_by", fast(&wait_by), METH_FASTCALL,
       "wait_by(self: _Stage, wait: object, root: object) -> None\n\nA wait is wait(me, frame), unless it is plain."},
      {"plain", &know_plain, METH_O,
       "plain(self: _Stage, code: object) -> None\n\nWaits of this body are plain, where the code `root` calls it."},
      {"begin_turns", fast(&begin_turns), METH_FASTCALL,
       "begin_turns(self: _Stage, host: object, hub: object, context: object, seats: list) -> None\n\n"
       "Participants share a thread; a seat is (switch, [host])."},
      {"end_turns", &end_turns, METH_NOARGS, "end_turns(self: _Stage) -> None\n\nThe seats name their host no more."},
      {"keep_order", &keep_order, METH_NOARGS,
       "keep_order(self: _Stage) -> list\n\nThe hub alone says who goes on; those who might have, the next one last."},
      {"enter", &enter, METH_NOARGS,
       "enter(self: _Stage) -> object\n\nThe participant that begins in the seat of the calling greenlet, or None."},
      {"ended", fast(&ended), METH_FASTCALL,
       "ended(self: _Stage, me: object, outcome: object) -> object\n\nWho begins in its seat, or None."},
      {"raised", fast(&raised), METH_FASTCALL,
       "raised(self: _Stage, me: object, is_own: bool) -> object\n\nNone, as nobody begins any more."},
      {"next", &next_turn, METH_NOARGS,
       "next(self: _Stage) -> object\n\nThe switch to whoever has the next turn, or to the hub."},
      {"suspend", &suspend, METH_O,
       "suspend(self: _Stage, me: object) -> object\n\nIt waits; the switch to whoever has the next turn, or the hub."},
      {"resumed", &resumed, METH_O, "resumed(self: _Stage, me: object) -> None\n\nIt has the turn again."},
      {"turn_of", &turn_of, METH_O,
       "turn_of(self: _Stage, position: int) -> object\n\nThe switch to a participant that has begun."},
      {"suspended", &suspended_positions, METH_NOARGS,
       "suspended(self: _Stage) -> list\n\nThe positions of those who wait, in the order of suspension."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot stage_slots[] = {{Py_tp_doc, const_cast<char*>("The participants of a program; see _new_stage.")},
                                      {Py_tp_methods, stage_methods},
                                      {Py_tp_traverse, slot(&traverse_stage)},
                                      {Py_tp_clear, slot(&clear_stage)},
                                      {Py_tp_dealloc, slot(&free_stage)},
                                      {0, nullptr}};
  static PyType_Spec stage_spec{"artifex_devices._core._Stage", sizeof(StageObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                stage_slots};

  bind_participant(module);
  stage_class = make_class(module, stage_spec);
  module.def("_new_stage", &make_stage, py::arg("rendezvous"), py::arg("participant_class"), py::arg("payloads"),
             py::arg("results"), py::arg("pending"),
             "The participants of a program: their payloads and results by position, `pending` where there is none.");
  bind_stage_calls(module);
}

}  // namespace artifex_devices::bindings
