// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/id.h"
#include "artifex_devices/collective/combine.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

inline constexpr size_t kKnownCollectives = 64;  // further ones are looked up and checked in Python

/// Indices that bodies pass to a collective (a permutation, groups of an axis), which Python has checked once.
///
/// A body may change a list between two collectives. A body that brings the same object as another one in the same
/// step is therefore known to bring the same indices; in another step they are compared.
struct PreparedArgument {
  struct Brought {
    int64_t step = -1;
    py::object argument;
  };

  py::object operation;
  py::object groups;                // AxisGroups of the axes
  py::object indices;               // nested tuples of ints
  py::object prepared;              // what Python made of them
  std::array<Brought, 16> brought;  // the last ones; steps of several groups may alternate
  size_t next = 0;

  bool is_same(PyObject* argument, int64_t step) const;
  bool is_equal(PyObject* argument) const;
  void note(PyObject* argument, int64_t step);
  void forget_brought();
};

/// A collective of one ndarray that the session has called before.
struct KnownCollective {
  py::object operation;
  py::object axis_name;
  py::object dtype;
  std::vector<py::ssize_t> shape;
  PreparedArgument* argument;  // null for None
  py::object options;          // tuple of the other arguments
  py::object collective;
  std::vector<GroupId> groups;  // by participant, or one for all
  int64_t signature;
  std::optional<Reduction> reduction;  // all members get the total of their blocks
};

/// Whether these are one name: the same object, or equal strings.
bool same_name(PyObject* a, PyObject* b);

/// The known collective that a call of `arrive` repeats in a step of its body, or null.
const KnownCollective* find_known(std::vector<KnownCollective>& collectives, PyObject* const* args, Py_ssize_t count,
                                  int64_t step);

// Methods of Scheduler.
PyObject* know(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* prepared(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* prepare(PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace artifex_devices::bindings
