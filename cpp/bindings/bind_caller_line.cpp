// SPDX-License-Identifier: Apache-2.0
// The line of the Python program that called into the package, for records of Arrays and transfers.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "artifex_devices/base/caller_line.h"
#include "bindings.h"
#include "caller_place.h"
#include "cpython_calls.h"
#include "gil.h"
#include "recent_cache.h"

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

/// Whether a frame belongs to the package, or to the module that runs its threads.
bool is_of_the_package(PyFrameObject* frame) {
  static PyObject* const name = PyUnicode_InternFromString("__name__");
  const auto globals = py::reinterpret_steal<py::dict>(PyFrame_GetGlobals(frame));
  if (!name || !globals) return false;
  const auto own = py::reinterpret_steal<py::object>(dict_item(globals.ptr(), name));
  const std::string_view module = text_of(own.ptr());
  return module == "artifex_devices" || module.starts_with("artifex_devices.") || module == "threading";
}

/// A place in the program that has called the package before. The table of lines of a function is read from its start.
struct KnownPlace {
  py::object code;  // null in an empty entry; keeps the text of the file alive
  int instruction = 0;
  bool is_of_the_package = false;
  CallerPlace place;

  bool is_empty() const { return !code; }
  static bool is_of(const Client&) { return false; }
};

auto& g_known_places = make_recent_cache<KnownPlace, 512>();

struct FramePlace {
  CallerPlace place;
  bool is_of_the_package = false;
};

FramePlace place_of(PyFrameObject* frame) {
  const auto owner = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  auto* const code = reinterpret_cast<PyCodeObject*>(owner.ptr());
  const int instruction = PyFrame_GetLasti(frame);
  const size_t hash = hash_pointer(code) * 31 + static_cast<size_t>(instruction);
  FramePlace found;
  const bool is_known = g_known_places.at(hash, [&](const KnownPlace& known) {
    if (!known.code.is(owner) || known.instruction != instruction) return false;
    found = {known.place, known.is_of_the_package};
    return true;
  });
  if (is_known) return found;
  const py::error_scope keep_error;
  const bool is_ours = is_of_the_package(frame);
  PyErr_Clear();
  const CallerPlace place{text_of(code->co_filename), PyCode_Addr2Line(code, instruction), code->co_filename};
  PyErr_Clear();
  g_known_places.store(hash, KnownPlace{owner, instruction, is_ours, place});
  return {place, is_ours};
}

/// As caller_place; takes the GIL.
std::optional<CallerLine> line_of_the_program() {
  return with_gil([]() -> std::optional<CallerLine> {
    const CallerPlace place = caller_place();
    if (place.file.empty() && place.line == 0) return std::nullopt;
    return CallerLine{std::string(place.file), place.line};
  });
}

}  // namespace

CallerPlace caller_place() {
  const auto owned = [](PyFrameObject* frame) {
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(frame));
  };
  py::object frame = owned(PyThreadState_GetFrame(PyThreadState_Get()));
  while (frame) {
    auto* const running = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto [place, is_of_the_package] = place_of(running);
    if (!is_of_the_package) return place;
    frame = owned(PyFrame_GetBack(running));
  }
  if (!line_that_started_thread) return {};
  return {line_that_started_thread->file, line_that_started_thread->line, nullptr};
}

void bind_caller_line(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  set_caller_line_source(&line_of_the_program);
  internal.def(
      "set_thread_caller",
      [](std::string file, int line) { line_that_started_thread = CallerLine{std::move(file), line}; }, py::arg("file"),
      py::arg("line"), "Records the line that started this thread, for transfers outside of user code.");
}

}  // namespace artifex_devices::bindings
