// SPDX-License-Identifier: Apache-2.0
#include <pybind11/critical_section.h>

#include <stdexcept>

#include "brief_reduction.h"
#include "cpython_calls.h"
#include "known_collectives.h"
#include "participant_object.h"
#include "scheduler.h"

namespace artifex_devices::bindings {
namespace {

PyObject* g_frame_above = nullptr;  // sys._getframe
PyObject* g_one = nullptr;
PyObject* g_partial = nullptr;
PyObject* g_nothing_to_do = nullptr;

bool is_any_imported(const py::object& names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i) {
    const int is_imported = PyDict_Contains(PyImport_GetModuleDict(), PyTuple_GET_ITEM(names.ptr(), i));
    if (is_imported != 0) {
      check(is_imported);
      return true;
    }
  }
  return false;
}

// Whether no frame of a foreign package can be between the body's line and its start. A body may import one at any
// time.
bool is_plain(const Participants& all, const ParticipantObject& me, const py::object& frame) {
  if (all.scheduler.is_ordered() || all.root.is_none()) return false;
  if (!is_any_imported(all.foreign)) return true;
  if (me.code != all.plain.ptr()) return false;
  PyFrameObject* back = PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame.ptr()));
  if (back == nullptr) return false;
  const py::object above = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(back));
  const py::object code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(back)));
  return code.ptr() == all.root.ptr();
}

// arrive(operation, axis_name, x, argument, *options), called by the function that the body called. Returns None for an
// unknown collective or outside of a body; else stores the payload and returns a function to call without arguments
// before `take`.
PyObject* arrive(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count < 3) throw py::type_error("arrive: expected operation, axis_name and x");
    const py::object current = participant_here();
    if (!current) Py_RETURN_NONE;
    auto& me = *reinterpret_cast<ParticipantObject*>(current.ptr());
    const py::scoped_critical_section lock(me.owner);
    if (me.has_ended) Py_RETURN_NONE;
    ++me.step;
    Participants& all = participants_of(me.owner);
    const KnownCollective* known = find_known(all.collectives, args, count, me.step);
    if (known == nullptr) Py_RETURN_NONE;
    const py::object frame = checked(PyObject_CallOneArg(g_frame_above, g_one));
    note_call(me, frame.ptr());
    // The body may have suppressed a Ctrl-C before it took its last result.
    all.scheduler.resume(me.id());
    check(PyList_SetItem(all.results.ptr(), me.position, new_reference(all.pending.ptr())));
    check(PyList_SetItem(all.payloads.ptr(), me.position, new_reference(args[2])));
    const GroupId group = known->groups.at(known->groups.size() == 1 ? 0 : static_cast<size_t>(me.position));
    switch (all.rendezvous->arrive(me.id(), group, known->signature)) {
      case Rendezvous::Arrival::kWait:
        if (!all.wait || is_plain(all, me, frame)) return switch_to(all, all.scheduler.suspend(me.id()));
        return PyObject_CallFunctionObjArgs(g_partial, all.wait.ptr(), current.ptr(), frame.ptr(), nullptr);
      case Rendezvous::Arrival::kFailed:
        break;
      case Rendezvous::Arrival::kComplete: {  // Python calls it, with none of our frames on the stack
        if (complete_brief_reduction(all, *known, group, me.id())) break;
        const py::object complete = all.session.attr("complete");
        return PyObject_CallFunctionObjArgs(g_partial, complete.ptr(), py::int_(me.position).ptr(),
                                            known->collective.ptr(), nullptr);
      }
    }
    return new_reference(g_nothing_to_do);
  });
}

// take(proceeded): returns the result of the collective that the body has arrived at. Its argument is what the function
// of `arrive` returned.
PyObject* take(PyObject*, PyObject*) {
  return translated([&]() -> PyObject* {
    const py::object current = participant_here();
    if (!current) throw std::runtime_error("take: a participant has ended inside of a collective");
    auto& me = *reinterpret_cast<ParticipantObject*>(current.ptr());
    Participants& all = participants_of(me.owner);
    all.scheduler.resume(me.id());
    const py::object held = checked(PySequence_GetItem(all.results.ptr(), me.position));
    PyObject* const result = held.ptr();
    if (!PyList_CheckExact(result) || PyList_GET_SIZE(result) != 1)
      return py::object(current.attr("result")()[py::int_(0)]).release().ptr();  // raises in most cases
    py::object leaf = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(result, 0));
    check(PyList_SetItem(all.results.ptr(), me.position, new_reference(all.pending.ptr())));
    check(PyList_SetItem(all.payloads.ptr(), me.position, new_reference(Py_None)));
    return leaf.release().ptr();
  });
}

PyObject* do_nothing(PyObject*, PyObject*) { Py_RETURN_NONE; }

}  // namespace

void bind_scheduler_calls(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  static PyMethodDef functions[] = {
      {"arrive", fast(&arrive), METH_FASTCALL,
       "arrive(operation: str, axis_name: object, x: object, argument: object = None, *options: object) -> object\n\n"
       "Returns the function to call before take, or None for an unknown collective. `argument` has indices that are the "
       "same for all participants, such as a permutation."},
      {"take", &take, METH_O,
       "take(proceeded: object) -> object\n\nReturns the result of the collective that the body has arrived at. "
       "`proceeded` is the result of the function that arrive returned."},
      {nullptr, nullptr, 0, nullptr}};
  static PyMethodDef nothing{"nothing", &do_nothing, METH_NOARGS, "Does nothing: no wait is needed."};

  g_frame_above = py::object(py::module_::import("sys").attr("_getframe")).release().ptr();
  g_partial = py::object(py::module_::import("functools").attr("partial")).release().ptr();
  g_one = py::int_(1).release().ptr();
  g_nothing_to_do = checked(PyCFunction_NewEx(&nothing, nullptr, nullptr)).release().ptr();
  check(PyModule_AddFunctions(internal.ptr(), functions));
}

}  // namespace artifex_devices::bindings
