// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "../cpython_calls.h"
#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices::planner::bindings {

namespace py = pybind11;

/// A Python function that a computation without the GIL calls with its progress; empty for None.
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
