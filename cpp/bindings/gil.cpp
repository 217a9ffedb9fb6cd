// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/worker_pool.h"
#include "python_owner.h"

namespace artifex_devices::bindings {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> entering{0};  // threads within an ExitGate
unsigned long main_thread = 0;
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

void shut_down_workers() {
  WorkerPool::python().shutdown();  // first, as its work may wait for the other pool's
  WorkerPool::process().shutdown();
}

// Runs at interpreter exit with the GIL: from now on no other thread enters Python through this extension.
void close_gate() {
  begin_exit();
  PyThreadState* state = PyEval_SaveThread();
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (entering.load() > 0 && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  shut_down_workers();
  PyEval_RestoreThread(state);
  release_dropped_owners();
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

ExitGate::ExitGate() noexcept {
  entering.fetch_add(1);
  is_open_ = !exit_has_begun() || is_main_thread();
  if (!is_open_) entering.fetch_sub(1);
}

ExitGate::~ExitGate() {
  if (is_open_) entering.fetch_sub(1);
}

ReleaseGil::ReleaseGil() : state_(PyEval_SaveThread()) { last_signal_check = Clock::now(); }

ReleaseGil::~ReleaseGil() {
  acquiring_gil("reacquiring the GIL");
  {
    const ExitGate gate;
    if (!gate.is_open()) sleep_to_the_end();
    PyEval_RestoreThread(state_);
  }
  release_dropped_owners();
}

AcquireGil::AcquireGil() {
  acquiring_gil("acquiring the GIL");
  const ExitGate gate;
  if (!gate.is_open()) return;
  acquired_ = true;
  state_ = PyGILState_Ensure();
}

AcquireGil::~AcquireGil() {
  if (!acquired_) return;
  PyGILState_Release(state_);
}

void install_gil_guards(py::module_& module) {
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  bind_exit_guard(module);
  set_interrupt_hook(&signal_pending);
  set_blocking_call_hook(&run_without_gil);
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::set_gil_hook(&holds_gil);
#endif
  bind_python_owners(module);
  module.def("_close", &close_gate, "Ends all workers. Registered with atexit.");
  py::module_::import("atexit").attr("register")(module.attr("_close"));
  module.def(
      "_shutdown",
      [] {
        const ReleaseGil release;
        shut_down_workers();
      },
      "Ends the workers after the copies in progress.");
}

}  // namespace artifex_devices::bindings
