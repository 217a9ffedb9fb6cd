// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Drops the GIL for its scope. Unlike py::gil_scoped_release it is safe at interpreter exit: CPython ends a late
/// thread by unwinding its stack, which a C++ frame turns into an abort, so a thread that comes back after exit began
/// stays asleep here until the process is gone.
class ReleaseGil {
 public:
  ReleaseGil();
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the GIL on a thread that does not have it, if the interpreter still runs; otherwise `acquired()` is false and
/// the caller must leave its Python references alone.
class AcquireGil {
 public:
  AcquireGil();
  ~AcquireGil();
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;
  bool acquired() const noexcept { return acquired_; }

 private:
  bool acquired_ = false;
  PyGILState_STATE state_{};
};

/// Leaves below this many bytes are copied with the GIL held: dropping it would cost more.
inline constexpr int64_t kReleaseGilBytes = int64_t{64} << 10;

/// Ctrl-C hook and exit gate; once, from the module's initialisation.
void install_gil_guards(py::module_& module);

}  // namespace artifex_devices::bindings
