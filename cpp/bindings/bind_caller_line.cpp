// SPDX-License-Identifier: Apache-2.0
// The line of the Python program that called into the package, for records of Arrays and transfers.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "artifex_devices/base/caller_line.h"
#include "bindings.h"
#include "gil.h"

namespace artifex_devices::bindings {
namespace {

// Of a thread that the package has started: the line that started it. Used where the thread runs no user code.
thread_local std::optional<CallerLine> line_that_started_thread;

// Text that lives as long as the object.
std::string_view text_of(PyObject* object) {
  Py_ssize_t length = 0;
  const char* text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : nullptr;
  return text ? std::string_view(text, static_cast<size_t>(length)) : std::string_view();
}

py::object globals_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return py::reinterpret_steal<py::object>(PyFrame_GetGlobals(frame));
#else
  return py::reinterpret_steal<py::object>(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals"));
#endif
}

/// Whether a frame belongs to the package, or to the module that runs its threads.
bool is_of_the_package(PyFrameObject* frame) {
  static PyObject* const name = PyUnicode_InternFromString("__name__");
  const py::object globals = globals_of(frame);
  if (!name || !globals || !PyDict_Check(globals.ptr())) return false;
  const std::string_view module = text_of(PyDict_GetItem(globals.ptr(), name));
  return module == "artifex_devices" || module.starts_with("artifex_devices.") || module == "threading";
}

/// The innermost Python frame outside the package. Takes the GIL; leaves no error behind.
std::optional<CallerLine> line_of_the_program() {
  const AcquireGil gil;
  if (!gil.acquired()) return std::nullopt;
  const py::error_scope keep_error;
  std::optional<CallerLine> found;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && !found) {
    if (!is_of_the_package(frame)) {
      const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
      PyObject* const file = reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename;
      found = CallerLine{std::string(text_of(file)), PyFrame_GetLineNumber(frame)};
    }
    PyErr_Clear();
    PyFrameObject* outer = found ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return found ? found : line_that_started_thread;
}

}  // namespace

void bind_caller_line(py::module_& module) {
  set_caller_line_source(&line_of_the_program);
  module.def(
      "_set_thread_caller",
      [](std::string file, int line) { line_that_started_thread = CallerLine{std::move(file), line}; }, py::arg("file"),
      py::arg("line"), "Records the line that started this thread, for transfers outside of user code.");
}

}  // namespace artifex_devices::bindings
