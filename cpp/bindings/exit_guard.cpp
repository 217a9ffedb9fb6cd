// SPDX-License-Identifier: Apache-2.0
// Threads that still run Python once the interpreter is finalizing.
#include "cpython_calls.h"
#include "gil.h"

namespace artifex_devices::bindings {
namespace {

// As sleeping_at_exit, for Python. Hidden from the address sanitizer: greenlet copies the stack with this frame away
// and back, which is not an access out of bounds.
__attribute__((no_sanitize("address"))) PyObject* call_sleeping_at_exit(PyObject*, PyObject* const* args,
                                                                        Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "call_sleeping_at_exit: expected function and x");
    return nullptr;
  }
  try {
    return PyObject_CallOneArg(args[0], args[1]);
  } catch (abi::__forced_unwind&) {
    sleep_to_the_end();
  }
}

}  // namespace

void bind_exit_guard(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  static PyMethodDef functions[] = {
      {"call_sleeping_at_exit", fast(&call_sleeping_at_exit), METH_FASTCALL,
       "call_sleeping_at_exit(function: object, x: object) -> object\n\n"
       "Calls function(x). A thread that CPython ends meanwhile, at interpreter exit, sleeps here: the frames of other "
       "extensions that called this function are not unwound."},
      {nullptr, nullptr, 0, nullptr}};
  check(PyModule_AddFunctions(internal.ptr(), functions));
}

}  // namespace artifex_devices::bindings
