// SPDX-License-Identifier: Apache-2.0
#include "known_collectives.h"

#include <pybind11/critical_section.h>

#include <algorithm>
#include <utility>

#include "cpython_calls.h"
#include "numpy_bridge.h"
#include "participant_object.h"
#include "scheduler.h"

namespace artifex_devices::bindings {
namespace {

bool same_int(PyObject* a, PyObject* b) {
  return PyLong_CheckExact(a) && PyLong_CheckExact(b) && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Of lists, tuples and ints only, so no code of the user runs. `indices` are nested tuples of ints.
bool has_indices(PyObject* argument, PyObject* indices) {
  if (!PyTuple_CheckExact(indices)) return argument == indices || same_int(argument, indices);
  if (!PyList_CheckExact(argument) && !PyTuple_CheckExact(argument)) return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(indices);
  if (PySequence_Fast_GET_SIZE(argument) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const auto item = py::reinterpret_steal<py::object>(sequence_item(argument, i));
    if (!item || !has_indices(item.ptr(), PyTuple_GET_ITEM(indices, i))) return false;
  }
  return true;
}

bool same_options(PyObject* known, PyObject* const* options, Py_ssize_t count) {
  if (PyTuple_GET_SIZE(known) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* option = PyTuple_GET_ITEM(known, i);
    if (option != options[i] && !same_int(option, options[i])) return false;
  }
  return true;
}

PreparedArgument* find_prepared(Participants& all, PyObject* operation, PyObject* groups, PyObject* argument,
                                int64_t step) {
  const auto has_key = [&](const PreparedArgument& each) {
    return each.operation.ptr() == operation && each.groups.ptr() == groups;
  };
  for (PreparedArgument& each : all.arguments) {
    if (has_key(each) && each.is_same(argument, step)) return &each;
  }
  for (PreparedArgument& each : all.arguments) {
    if (has_key(each) && each.is_equal(argument)) return &each;
  }
  return nullptr;
}

}  // namespace

bool PreparedArgument::is_same(PyObject* argument, int64_t step) const {
  for (size_t i = 1; i <= brought.size(); ++i) {  // the last one first
    const Brought& each = brought[(next + brought.size() - i) % brought.size()];
    if (each.step == step && each.argument.ptr() == argument) return true;
  }
  return false;
}

bool PreparedArgument::is_equal(PyObject* argument) const { return has_indices(argument, indices.ptr()); }

void PreparedArgument::note(PyObject* argument, int64_t step) {
  const Brought before = std::exchange(brought[next], {step, py::reinterpret_borrow<py::object>(argument)});
  next = (next + 1) % brought.size();
}

void PreparedArgument::forget_brought() { const std::array<Brought, 16> before = std::exchange(brought, {}); }

bool same_name(PyObject* a, PyObject* b) {
  return a == b || (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b) && PyUnicode_Compare(a, b) == 0);
}

const KnownCollective* find_known(std::vector<KnownCollective>& collectives, PyObject* const* args, Py_ssize_t count,
                                  int64_t step) {
  const NdarrayKind x = kind_of_ndarray(args[2]);
  if (x.dtype == nullptr) return nullptr;
  PyObject* argument = count > 3 ? args[3] : Py_None;
  const auto is_call = [&](const KnownCollective& each) {
    return each.operation.ptr() == args[0] && each.dtype.ptr() == x.dtype && std::ranges::equal(each.shape, x.shape) &&
           same_name(each.axis_name.ptr(), args[1]) && (each.argument == nullptr) == (argument == Py_None) &&
           same_options(each.options.ptr(), args + std::min<Py_ssize_t>(count, 4), std::max<Py_ssize_t>(count - 4, 0));
  };
  for (const KnownCollective& each : collectives) {
    if (is_call(each) && (each.argument == nullptr || each.argument->is_same(argument, step))) return &each;
  }
  if (argument == Py_None) return nullptr;
  for (const KnownCollective& each : collectives) {
    if (is_call(each) && each.argument->is_equal(argument)) {
      each.argument->note(argument, step);
      return &each;
    }
  }
  return nullptr;
}

// know(operation, axis_name, x, argument, options, collective, groups, signature, reduction): from now on `arrive`
// handles this operation over these axes for arrays like x, with one group for each participant or one for all.
// `argument` is a prepared one or None; `reduction` is "" unless all members get the total of their blocks.
PyObject* know(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 9 || !PyTuple_CheckExact(args[4]) || !PyList_CheckExact(args[6]))
      throw py::type_error(
          "know: expected operation, axis_name, x, argument, tuple of options, collective, list of groups, signature "
          "and reduction");
    const py::scoped_critical_section lock(self);
    Participants& all = participants_of(self);
    const NdarrayKind kind = kind_of_ndarray(args[2]);
    if (all.collectives.size() >= kKnownCollectives || kind.dtype == nullptr) Py_RETURN_NONE;
    PreparedArgument* argument = nullptr;
    if (args[3] != Py_None) {
      const auto found = std::ranges::find_if(
          all.arguments, [&](const PreparedArgument& each) { return each.prepared.ptr() == args[3]; });
      if (found == all.arguments.end()) Py_RETURN_NONE;
      argument = &*found;
    }
    std::vector<GroupId> groups;
    for (const py::handle group : py::reinterpret_borrow<py::list>(args[6])) groups.emplace_back(group.cast<int64_t>());
    const auto reduction = py::handle(args[8]).cast<std::string>();
    all.collectives.push_back({py::reinterpret_borrow<py::object>(args[0]),
                               py::reinterpret_borrow<py::object>(args[1]),
                               py::reinterpret_borrow<py::object>(kind.dtype),
                               {kind.shape.begin(), kind.shape.end()},
                               argument,
                               py::reinterpret_borrow<py::object>(args[4]),
                               py::reinterpret_borrow<py::object>(args[5]),
                               std::move(groups),
                               py::handle(args[7]).cast<int64_t>(),
                               reduction.empty() ? std::nullopt : std::optional(reduction_from_name(reduction))});
    Py_RETURN_NONE;
  });
}

// prepared(me, operation, groups, argument): returns the prepared form of equal indices, or None.
PyObject* prepared(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 4) throw py::type_error("prepared: expected me, operation, groups and argument");
    const int64_t step = participant_at(args[0]).step;
    const py::scoped_critical_section lock(self);
    PreparedArgument* found = find_prepared(participants_of(self), args[1], args[2], args[3], step);
    if (found == nullptr) Py_RETURN_NONE;
    if (!found->is_same(args[3], step)) found->note(args[3], step);
    return new_reference(found->prepared.ptr());
  });
}

// prepare(me, operation, groups, argument, indices, prepared): stores the prepared form of an argument. Returns it, or
// the stored form of equal indices.
PyObject* prepare(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return translated([&]() -> PyObject* {
    if (count != 6) throw py::type_error("prepare: expected me, operation, groups, argument, indices and prepared");
    Participants& all = participants_of(self);
    const int64_t step = participant_at(args[0]).step;
    const py::scoped_critical_section lock(self);
    PreparedArgument* found = find_prepared(all, args[1], args[2], args[4], step);
    if (found == nullptr) {
      if (all.arguments.size() >= kKnownCollectives) return new_reference(args[5]);
      found = &all.arguments.emplace_back(PreparedArgument{.operation = py::reinterpret_borrow<py::object>(args[1]),
                                                           .groups = py::reinterpret_borrow<py::object>(args[2]),
                                                           .indices = py::reinterpret_borrow<py::object>(args[4]),
                                                           .prepared = py::reinterpret_borrow<py::object>(args[5]),
                                                           .brought = {}});
    }
    found->note(args[3], step);
    return new_reference(found->prepared.ptr());
  });
}

}  // namespace artifex_devices::bindings
