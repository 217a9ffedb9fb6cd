// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <atomic>
#include <chrono>

#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/worker_pool.h"
#include "python_owner.h"

namespace artifex_devices::bindings {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kExitWait{2};  // longest wait for the workers of each pool at interpreter exit

unsigned long main_thread = 0;
std::atomic<bool> exit_began{false};
thread_local Clock::time_point last_signal_check{};

bool is_main_thread() noexcept { return PyThread_get_thread_ident() == main_thread; }

// Checks for Ctrl-C at most every 50 ms: taking the GIL from a busy Python thread can take 5 ms.
bool signal_pending() {
  if (!is_main_thread()) return false;
  const auto now = Clock::now();
  if (now - last_signal_check < std::chrono::milliseconds(50)) return false;
  last_signal_check = now;
  if (holds_gil()) return PyErr_CheckSignals() != 0;
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool pending = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return pending;
}

// Runs at interpreter exit with the GIL. Other threads and later callbacks may still use the library.
void shut_down_at_exit() {
  exit_began = true;
  const ReleaseGil release;
  WorkerPool::python().shutdown(kExitWait);  // first, as its work may wait for the other pool's
  WorkerPool::process().shutdown(kExitWait);
}

void run_without_gil(void (*work)(void*), void* argument) {
  if (!holds_gil()) return work(argument);
  const ReleaseGil release;
  work(argument);
}

}  // namespace

bool holds_gil() noexcept {
  const PyThreadState* own = PyGILState_GetThisThreadState();
  return own != nullptr && own == py::detail::get_thread_state_unchecked();
}

bool exit_has_begun() noexcept { return exit_began; }

ReleaseGil::ReleaseGil() : state_(PyEval_SaveThread()) { last_signal_check = Clock::now(); }

ReleaseGil::~ReleaseGil() {
  acquiring_gil("reacquiring the GIL");
  sleeping_at_exit([&] { PyEval_RestoreThread(state_); });
  release_dropped_owners();
}

AcquireGil::AcquireGil() {
  acquiring_gil("acquiring the GIL");
  // Py_IsInitialized() needs no GIL, and is 0 while the main thread finalizes the interpreter. PyGILState_Ensure may
  // use what it has released.
  if (Py_IsInitialized() == 0 && !is_main_thread()) sleep_to_the_end();
  sleeping_at_exit([&] { state_ = PyGILState_Ensure(); });
}

AcquireGil::~AcquireGil() { PyGILState_Release(state_); }

void install_gil_guards(py::module_& module) {
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  bind_exit_guard(module);
  set_interrupt_hook(&signal_pending);
  set_blocking_call_hook(&run_without_gil);
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::set_gil_hook(&holds_gil);
#endif
  bind_python_owners(module);
  module.def("_close", &shut_down_at_exit, "Ends all workers, with a limit of time. Registered with atexit.");
  py::module_::import("atexit").attr("register")(module.attr("_close"));
  module.def(
      "_shutdown",
      [] {
        const ReleaseGil release;
        WorkerPool::python().shutdown();
        WorkerPool::process().shutdown();
      },
      "Ends the workers after the copies in progress.");
}

}  // namespace artifex_devices::bindings
