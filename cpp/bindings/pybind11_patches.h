// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

// Corrections of what pybind11 does, applied once to all classes and functions that the module has by then.

/// `Class.__new__(Class)` gives an object whose __init__ has not run: there is no C++ value in it. From here on whoever
/// asks for that value, of any class that the module has by now, gets a TypeError. pybind11 by itself hands out memory
/// that no constructor has seen.
void reject_uninitialized(const py::module_& module);

/// Makes a Python object that there is no memory for an error. pybind11 (3.1) writes into what a class's tp_alloc gives
/// without a look whether it gave anything, in casts and in `Class(...)`: the process ends with SIGSEGV. From here on
/// casts to the classes that `module` has by now throw std::bad_alloc, and calls of these classes raise MemoryError.
void check_allocations(const py::module_& module);

/// Keeps C++ objects whole where there is no memory for their Python object. pybind11 (3.1) marks the Python object of
/// a shared C++ one as its owner before it enters it into its table, and where that throws it destroys the C++ object,
/// which others still hold. Called once, when all classes of `module` are there; casts take an indirect call more.
///
/// Where __init__ makes the object, an error of that table ends the process, unless the function given to py::init
/// returns the holder (std::unique_ptr, std::shared_ptr) and not the value: so all of them do.
void guard_casts(const py::module_& module);

/// Arguments that a bound function or class cannot take are a TypeError in this library's words: operation, argument,
/// what was expected and what came. pybind11's own text lists the C++ side's signatures and the repr of every argument.
/// Holds for all that the module has by now; classes without a constructor say where their objects come from.
void install_argument_errors(const py::module_& module);

/// Makes the functions that pickles name plain ones, which a pickle names as `artifex_devices._core` and their name.
/// pybind11 3 has its own functions pickled as a call of eval, which an unpickler with a list of what it allows
/// refuses. Last of all that is bound.
void install_pickle_functions(const py::module_& module);

}  // namespace artifex_devices::bindings
