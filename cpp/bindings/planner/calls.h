// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "../cpython_calls.h"
#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices::planner::bindings {

namespace py = pybind11;

/// Runs a computation that may take long as the runtime runs its own waits: without the GIL, so that Ctrl-C interrupts
/// it.
template <class Work>
auto without_gil(Work&& work) {
  struct Call {
    Work& work;
    std::optional<decltype(work())> result;
    std::exception_ptr error;
  } call{work, {}, {}};
  run_blocking(
      [](void* argument) {
        auto& running = *static_cast<Call*>(argument);
        try {
          running.result.emplace(running.work());
        } catch (const std::exception&) {
          running.error = std::current_exception();
        }
      },
      &call);
  if (call.error) std::rethrow_exception(call.error);
  return *std::move(call.result);
}

/// A function of Python that a computation without the GIL calls with what is done; empty for None.
inline std::function<void(int64_t)> progress_report(const py::object& progress) {
  if (progress.is_none()) return {};
  return [progress = progress.ptr()](int64_t done) {
    artifex_devices::bindings::sleeping_at_exit([&] {
      const py::gil_scoped_acquire gil;
      artifex_devices::bindings::call_python(progress, py::int_(done));
    });
  };
}

inline Dims dims(const std::vector<int64_t>& sizes) { return Dims(std::span<const int64_t>(sizes)); }

}  // namespace artifex_devices::planner::bindings
