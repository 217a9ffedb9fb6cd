// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "cpython_calls.h"
#include "participant_object.h"
#include "scheduler.h"

namespace artifex_devices::bindings {

void unsuspend(Scheduler& scheduler, size_t position) {
  if (position >= scheduler.is_suspended.size() || !scheduler.is_suspended[position]) return;
  scheduler.is_suspended[position] = false;
  auto& order = scheduler.suspended;
  const auto found = std::find(order.rbegin(), order.rend(), position);  // usually the last one
  order.erase(std::next(found).base());
}

PyObject* next_switch(Scheduler& scheduler) {
  const bool has_failed = scheduler.has_failed();
  if (scheduler.begun < scheduler.participants.size() && !has_failed) {
    PyObject* seat = scheduler.starting;  // set if Ctrl-C came before the switch to it
    if (seat == nullptr) {
      seat = PyList_GetItem(scheduler.seats.ptr(), scheduler.used);
      if (seat == nullptr) throw py::error_already_set();
      ++scheduler.used;
      scheduler.starting = seat;
    }
    check(PyList_SetItem(PyTuple_GET_ITEM(seat, 1), 0, new_reference(scheduler.host.ptr())));
    return new_reference(switch_of(seat));
  }
  if (!scheduler.is_ordered) {
    auto& batch = scheduler.batch;
    if (batch.empty()) {
      std::ranges::copy_if(scheduler.suspended, std::back_inserter(batch),
                           [&](size_t position) { return has_failed || !scheduler.is_pending(position); });
    }
    while (!batch.empty()) {
      const size_t position = batch.back();
      batch.pop_back();
      if (scheduler.is_suspended[position]) return new_reference(switch_of(scheduler.seat_of[position]));
    }
  }
  return new_reference(scheduler.hub.ptr());
}

PyObject* suspended_switch(Scheduler& scheduler, size_t position) {
  if (position >= scheduler.is_suspended.size()) throw std::runtime_error("the call of this participant has ended");
  if (!scheduler.is_suspended[position]) {
    scheduler.suspended.push_back(position);
    scheduler.is_suspended[position] = true;
  }
  return next_switch(scheduler);
}

PyObject* begin_in(Scheduler& scheduler, PyObject* seat) {
  if (scheduler.begun >= scheduler.participants.size() || scheduler.has_failed()) Py_RETURN_NONE;
  const size_t position = scheduler.begun;
  PyObject* object = scheduler.participants[position].ptr();
  auto& me = *reinterpret_cast<ParticipantObject*>(object);
  const py::object context = checked(PyContext_Copy(scheduler.context.ptr()));
  check(PyContext_Enter(context.ptr()));
  Py_XSETREF(me.context, new_reference(context.ptr()));
  const py::object token = checked(PyContextVar_Set(participant_variable, object));
  ++scheduler.begun;
  scheduler.seat_of[position] = seat;
  me.thread = PyThread_get_thread_ident();
  return new_reference(object);
}

}  // namespace artifex_devices::bindings
