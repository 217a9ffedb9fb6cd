// SPDX-License-Identifier: Apache-2.0
#include "participant_object.h"

#include <pybind11/critical_section.h>
#include <structmember.h>

#include <cstddef>
#include <utility>

#include "cpython_calls.h"

namespace artifex_devices::bindings {

PyTypeObject* participant_class = nullptr;
PyObject* participant_variable = nullptr;

namespace {

int traverse_participant(PyObject* self, visitproc visit, void* arg) {
  auto& me = *reinterpret_cast<ParticipantObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(me.session);
  Py_VISIT(me.owner);
  Py_VISIT(me.args);
  Py_VISIT(me.context);
  return 0;
}

int clear_participant(PyObject* self) {
  auto& me = *reinterpret_cast<ParticipantObject*>(self);
  Py_CLEAR(me.session);
  Py_CLEAR(me.args);
  Py_CLEAR(me.context);
  return 0;
}

void free_participant(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear_participant(self);
  auto& me = *reinterpret_cast<ParticipantObject*>(self);
  Py_CLEAR(me.owner);
  Py_CLEAR(me.code);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

ParticipantObject& participant_at(PyObject* object) {
  if (!PyObject_TypeCheck(object, participant_class)) throw py::type_error("expected a participant");
  return *reinterpret_cast<ParticipantObject*>(object);
}

py::object participant_here() {
  PyObject* found = nullptr;
  if (participant_variable == nullptr) return {};
  check(PyContextVar_Get(participant_variable, nullptr, &found));
  py::object current = py::reinterpret_steal<py::object>(found);
  if (!PyObject_TypeCheck(found, participant_class)) return {};
  const auto& me = *reinterpret_cast<ParticipantObject*>(found);
  if (me.has_ended || me.thread != PyThread_get_thread_ident()) return {};
  return current;
}

void note_call(ParticipantObject& me, PyObject* frame) {
  auto* line = reinterpret_cast<PyFrameObject*>(frame);
  auto* code = reinterpret_cast<PyObject*>(PyFrame_GetCode(line));
  {
    const py::scoped_critical_section lock(reinterpret_cast<PyObject*>(&me));  // other threads may read it
    std::swap(me.code, code);
  }
  Py_XDECREF(code);
  me.instruction = PyFrame_GetLasti(line);
}

void bind_participant(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  static PyMemberDef participant_members[] = {
      {"session", T_OBJECT_EX, offsetof(ParticipantObject, session), READONLY, "Session of the mapped call."},
      {"args", T_OBJECT_EX, offsetof(ParticipantObject, args), READONLY,
       "Arguments of its body: a tuple, or the only argument."},
      {"position", T_PYSSIZET, offsetof(ParticipantObject, position), READONLY,
       "Position in the session's axes, row-major."},
      {"thread", T_ULONG, offsetof(ParticipantObject, thread), 0,
       "Identity of the only thread that may call collectives."},
      {"has_ended", T_BOOL, offsetof(ParticipantObject, has_ended), READONLY, "Whether the mapped call has ended."},
      {"code", T_OBJECT_EX, offsetof(ParticipantObject, code), 0, "Code of the body's last call of a collective."},
      {"instruction", T_INT, offsetof(ParticipantObject, instruction), 0, "Instruction of that call in the code."},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot participant_slots[] = {
      {Py_tp_doc, const_cast<char*>("One run of a body; created by a scheduler.")},
      {Py_tp_members, participant_members},
      {Py_tp_traverse, slot(&traverse_participant)},
      {Py_tp_clear, slot(&clear_participant)},
      {Py_tp_dealloc, slot(&free_participant)},
      {0, nullptr}};
  static PyType_Spec participant_spec{
      "artifex_devices._core.internal.Participant", sizeof(ParticipantObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      participant_slots};

  participant_class = make_class(internal, participant_spec);
  internal.def(
      "use_participant_variable",
      [](const py::object& variable) { participant_variable = new_reference(variable.ptr()); }, py::arg("variable"),
      "Sets the context variable of the current participant, permanently.");
}

}  // namespace artifex_devices::bindings
