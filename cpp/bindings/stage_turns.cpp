// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "participant_object.h"
#include "plain_calls.h"
#include "stage.h"

namespace artifex_devices::bindings {

void unsuspend(Stage& stage, size_t position) {
  if (position >= stage.is_suspended.size() || !stage.is_suspended[position]) return;
  stage.is_suspended[position] = false;
  auto& order = stage.suspended;
  const auto found = std::find(order.rbegin(), order.rend(), position);  // the last one, mostly
  order.erase(std::next(found).base());
}

PyObject* next_switch(Stage& stage) {
  const bool has_failed = stage.has_failed();
  if (stage.begun < stage.participants.size() && !has_failed) {
    PyObject* seat = stage.starting;  // Ctrl-C came before the switch to it
    if (seat == nullptr) {
      seat = PyList_GetItem(stage.seats.ptr(), stage.used);
      if (seat == nullptr) throw py::error_already_set();
      ++stage.used;
      stage.starting = seat;
    }
    check(PyList_SetItem(PyTuple_GET_ITEM(seat, 1), 0, given(stage.host.ptr())));
    return given(switch_of(seat));
  }
  if (!stage.is_ordered) {
    auto& batch = stage.batch;
    if (batch.empty()) {
      std::ranges::copy_if(stage.suspended, std::back_inserter(batch),
                           [&](size_t position) { return has_failed || !stage.is_pending(position); });
    }
    while (!batch.empty()) {
      const size_t position = batch.back();
      batch.pop_back();
      if (stage.is_suspended[position]) return given(switch_of(stage.seat_of[position]));
    }
  }
  return given(stage.hub.ptr());
}

PyObject* suspended_switch(Stage& stage, size_t position) {
  if (position >= stage.is_suspended.size()) throw std::runtime_error("the call of this participant has ended");
  if (!stage.is_suspended[position]) {
    stage.suspended.push_back(position);
    stage.is_suspended[position] = true;
  }
  return next_switch(stage);
}

PyObject* begin_in(Stage& stage, PyObject* seat) {
  if (stage.begun >= stage.participants.size() || stage.has_failed()) Py_RETURN_NONE;
  const size_t position = stage.begun;
  PyObject* object = stage.participants[position].ptr();
  auto& me = *reinterpret_cast<ParticipantObject*>(object);
  const py::object context = checked(PyContext_Copy(stage.context.ptr()));
  check(PyContext_Enter(context.ptr()));
  Py_XSETREF(me.context, given(context.ptr()));
  const py::object token = checked(PyContextVar_Set(participant_variable, object));
  ++stage.begun;
  stage.seat_of[position] = seat;
  me.thread = PyThread_get_thread_ident();
  return given(object);
}

}  // namespace artifex_devices::bindings
