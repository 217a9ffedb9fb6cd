// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <span>

namespace artifex_devices::bindings {

/// The dtype and shape of an object that is an ndarray and of no subclass; no dtype for all others. Borrowed from it.
struct NdarrayKind {
  PyObject* dtype = nullptr;
  std::span<const Py_ssize_t> shape;
};
NdarrayKind kind_of_ndarray(PyObject* object) noexcept;

}  // namespace artifex_devices::bindings
