// SPDX-License-Identifier: Apache-2.0
// Threads that still run Python when the interpreter exits. CPython up to 3.13 ends such a thread, when it takes the
// GIL, by unwinding its stack: destructors of C++ frames would release Python objects without the GIL.
#include <unistd.h>
#include <unwind.h>

#include <atomic>

#include "cpython_calls.h"
#include "gil.h"

namespace artifex_devices::bindings {
namespace {

std::atomic<bool> begun{false};

// under_our_frame(function, x) calls function(x). Hidden from the address sanitizer: greenlet copies the stack with
// this frame away and back, which is not an access out of bounds.
__attribute__((no_sanitize("address"))) PyObject* under_our_frame(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "under_our_frame: expected function and x");
    return nullptr;
  }
  const py::object function = py::reinterpret_borrow<py::object>(args[0]);  // gives the frame a destructor
  return PyObject_CallOneArg(function.ptr(), args[1]);
}

}  // namespace

bool exit_has_begun() noexcept { return begun.load(); }

void begin_exit() noexcept { begun.store(true); }

void sleep_to_the_end() noexcept {
  for (;;) ::pause();
}

void bind_exit_guard(py::module_& module) {
  static PyMethodDef functions[] = {
      {"_under_our_frame", fast(&under_our_frame), METH_FASTCALL,
       "_under_our_frame(function: object, x: object) -> object\n\n"
       "Calls function(x). Frames of other extensions around it are not unwound when the interpreter exits."},
      {nullptr, nullptr, 0, nullptr}};
  check(PyModule_AddFunctions(module.ptr(), functions));
}

}  // namespace artifex_devices::bindings

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception, _Unwind_Context* context);

// The unwinder calls it for each C++ frame of this extension: the linker puts it before libstdc++'s function (--wrap).
// A thread that CPython ends sleeps at its innermost frame of this extension, before anything in it is destroyed.
_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception, _Unwind_Context* context) {
  if ((actions & _UA_FORCE_UNWIND) != 0 && artifex_devices::bindings::exit_has_begun()) {
    artifex_devices::bindings::sleep_to_the_end();
  }
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
// NOLINTEND(bugprone-reserved-identifier)
}
