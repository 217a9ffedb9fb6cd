// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/worker_pool.h"
#include "late_thread.h"

namespace artifex_devices::bindings {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> entering{0};  // threads between the gate and the GIL
unsigned long main_thread = 0;
thread_local Clock::time_point last_signal_check{};

bool is_main_thread() noexcept { return PyThread_get_thread_ident() == main_thread; }

// Says whether this thread may still ask for the GIL; pairs with leave_gate().
bool enter_gate() noexcept {
  entering.fetch_add(1);
  if (exit_has_begun() && !is_main_thread()) {
    entering.fetch_sub(1);
    return false;
  }
  return true;
}

void leave_gate() noexcept { entering.fetch_sub(1); }

// Looks for Ctrl-C at most every 50 ms: taking the GIL from a busy Python thread can cost 5 ms.
bool signal_pending() {
  if (!is_main_thread()) return false;
  const auto now = Clock::now();
  if (now - last_signal_check < std::chrono::milliseconds(50)) return false;
  last_signal_check = now;
  if (PyGILState_Check()) return PyErr_CheckSignals() != 0;
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool pending = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return pending;
}

// Runs at interpreter exit with the GIL: from here on no other thread comes back into Python through us.
void close_gate() {
  begin_exit();
  PyThreadState* state = PyEval_SaveThread();
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (entering.load() > 0 && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  WorkerPool::process().shutdown();
  PyEval_RestoreThread(state);
}

}  // namespace

ReleaseGil::ReleaseGil() : state_(PyEval_SaveThread()) { last_signal_check = Clock::now(); }

ReleaseGil::~ReleaseGil() {
  no_lock_held("taking Python's lock back");
  if (!enter_gate()) sleep_to_the_end();
  PyEval_RestoreThread(state_);
  leave_gate();
}

AcquireGil::AcquireGil() {
  no_lock_held("taking Python's lock");
  if (!enter_gate()) return;
  acquired_ = true;
  state_ = PyGILState_Ensure();
  leave_gate();
}

AcquireGil::~AcquireGil() {
  if (!acquired_) return;
  PyGILState_Release(state_);
}

void install_gil_guards(py::module_& module) {
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  bind_late_thread(module);
  set_interrupt_hook(&signal_pending);
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::set_python_lock_hook([] { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; });
#endif
  module.def("_close", &close_gate, "Ends all workers; registered with atexit.");
  py::module_::import("atexit").attr("register")(module.attr("_close"));
  module.def(
      "_shutdown",
      [] {
        const ReleaseGil release;
        WorkerPool::process().shutdown();
      },
      "Ends the workers, after the copies under way.");
}

}  // namespace artifex_devices::bindings
