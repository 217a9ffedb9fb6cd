// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

// Corrections of pybind11 (3.1), applied once to all classes and functions that the module has at that time.

/// `Class.__new__(Class)` returns an object without a C++ value, as its __init__ has not run. Using its value now
/// raises TypeError, where pybind11 would return uninitialized memory.
void reject_uninitialized(const py::module_& module);

/// Reports a failed allocation of a Python object: casts throw std::bad_alloc, and calls of classes raise MemoryError,
/// where pybind11 would write through the null pointer of tp_alloc.
void check_allocations(const py::module_& module);

/// Keeps a shared C++ object alive where the allocation of its Python object fails. pybind11 marks the Python object as
/// the owner before it adds it to its table, and if that throws, destroys the C++ object that others still hold. Casts
/// cost one more indirect call.
///
/// If __init__ creates the object, an error of that table ends the process, unless the function of py::init returns the
/// holder (std::unique_ptr, std::shared_ptr) and not the value: so all of them do.
void guard_casts(const py::module_& module);

/// Raises TypeError in this library's form for arguments that a bound function cannot take: operation, argument,
/// expected and received type. pybind11's text lists C++ signatures and the repr of every argument. Classes without a
/// constructor name the functions that return their objects.
void install_argument_errors(const py::module_& module);

/// Turns the functions that pickles refer to into plain ones, pickled as `artifex_devices._core` and their name.
/// pybind11 pickles its functions as a call of eval, which an unpickler with an allow-list refuses. Call it last.
void install_pickle_functions(const py::module_& module);

}  // namespace artifex_devices::bindings
