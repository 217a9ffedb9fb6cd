// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Whether the calling thread has the GIL. Works on any thread, and with subinterpreters, where PyGILState_Check() is
/// always true.
bool holds_gil() noexcept;

/// Sleeps until the process ends.
[[noreturn]] inline void sleep_to_the_end() noexcept {
  for (;;) ::pause();
}

/// Runs `work`, which takes the GIL or runs Python code that may release it. Once the interpreter is finalizing,
/// CPython up to 3.13 ends each other thread that takes the GIL: it unwinds the thread's stack without the GIL, which
/// aborts the process at a `catch (...)` or in a noexcept function, and runs destructors of Python references. Such a
/// thread sleeps here instead, as in CPython 3.14 (docs/decisions/0005).
template <class Work>
decltype(auto) sleeping_at_exit(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (abi::__forced_unwind&) {
    sleep_to_the_end();
  }
}

/// Drops the GIL for its scope, then releases borrowed memory that was dropped meanwhile. Unlike py::gil_scoped_release
/// it is safe at interpreter exit.
class ReleaseGil {
 public:
  ReleaseGil();
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the GIL for its scope. Python code that runs in it must be in sleeping_at_exit: see with_gil.
class AcquireGil {
 public:
  AcquireGil();
  ~AcquireGil();
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Runs `work` with the GIL, on a thread that does not have it. Not for workers of WorkerPool::process().
template <class Work>
decltype(auto) with_gil(Work&& work) {
  const AcquireGil gil;
  return sleeping_at_exit(std::forward<Work>(work));
}

/// Runs work that may take long without the GIL: other Python threads run meanwhile, and Ctrl-C interrupts it.
template <class Work>
auto without_gil(Work&& work) {
  const ReleaseGil release;
  return work();
}

/// Installs the Ctrl-C hook and the hook of interpreter exit. Called once, at import.
void install_gil_guards(py::module_& module);

/// For a C slot whose callers may drop errors, when the exception of a signal handler is the current Python error. If
/// no Python code receives the exception, the next wait of the main thread raises it, or the next instruction of
/// Python.
void raise_again_if_dropped() noexcept;

/// Whether interpreter exit has begun; the interpreter may still run for long, in later callbacks.
bool exit_has_begun() noexcept;

}  // namespace artifex_devices::bindings
