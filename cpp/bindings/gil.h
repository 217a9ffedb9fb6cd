// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "artifex_devices/base/config.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Whether the calling thread has the GIL. On any thread; also where subinterpreters exist, with which
/// PyGILState_Check() is always true.
bool holds_gil() noexcept;

/// Keeps interpreter exit from going on while this thread asks for the GIL or uses the interpreter without it. Closed
/// for all threads but the main one once exit has begun.
class ExitGate {
 public:
  ExitGate() noexcept;
  ~ExitGate();
  ExitGate(const ExitGate&) = delete;
  ExitGate& operator=(const ExitGate&) = delete;
  bool is_open() const noexcept { return is_open_; }

 private:
  bool is_open_;
};

/// Drops the GIL for its scope, and releases borrowed memory that was dropped meanwhile. Unlike py::gil_scoped_release
/// it is safe at interpreter exit: CPython ends a late thread by unwinding its stack, which a C++ frame turns into an
/// abort, so a thread that comes back after exit began stays asleep here until the process is gone.
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
/// the caller must leave its Python references alone. Never on a worker of WorkerPool::process().
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

/// Whether a copy is made with the GIL held. `bytes` are those that it writes, or more. True only for copies so small
/// that dropping the GIL would cost more, and that the calling thread makes alone: with the GIL nobody waits for
/// workers.
inline bool copies_with_gil(int64_t bytes) noexcept {
  constexpr int64_t kMost = int64_t{64} << 10;
  const Config& limits = config();
  return bytes < kMost && bytes < limits.parallel_copy_bytes.load(std::memory_order_relaxed) &&
         bytes < limits.async_copy_bytes.load(std::memory_order_relaxed);
}

/// The same for copies of `bytes` to all buffers of a sharding; memories of several NUMA nodes have one each.
inline bool copies_with_gil(int64_t bytes, const Sharding& to) noexcept {
  if (to.buffers().is_tile()) return copies_with_gil(bytes);
  const int64_t most = std::max<int64_t>(1, 1 + to.buffers().size() - to.grid().tiles());
  return copies_with_gil(bytes) && copies_with_gil(bytes * most);
}

/// Runs `work` with the GIL, or without.
template <class Work>
auto run_with_gil_if(bool keeps, Work&& work) {
  if (keeps) return work();
  const ReleaseGil release;
  return work();
}

/// Runs work that may take long without the GIL: other Python threads run meanwhile, and Ctrl-C interrupts it.
template <class Work>
auto without_gil(Work&& work) {
  const ReleaseGil release;
  return work();
}

/// Ctrl-C hook and exit gate; once, from the module's initialisation.
void install_gil_guards(py::module_& module);

/// Whether the interpreter has begun to go down.
bool exit_has_begun() noexcept;
void begin_exit() noexcept;

/// For a thread that would enter Python after exit began: until the process is gone.
[[noreturn]] void sleep_to_the_end() noexcept;

void bind_exit_guard(py::module_& module);

}  // namespace artifex_devices::bindings
