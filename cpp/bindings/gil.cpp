// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/worker_pool.h"
#include "cpython_calls.h"
#include "python_owner.h"

namespace artifex_devices::bindings {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kExitWait{2};  // longest wait for the workers of each pool at interpreter exit

std::atomic<unsigned long> main_thread{0};
std::atomic<bool> exit_began{false};
thread_local Clock::time_point last_signal_check{};

bool is_main_thread() noexcept { return PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed); }

// The exception of a signal handler that a C slot has returned, and its traceback then. Used by the main thread only.
PyObject* returned_error = nullptr;
PyObject* returned_trace = nullptr;

// Forgets the exception that a slot returned. Returns whether it was dropped, and then makes it the current error. A
// function of Python that receives an exception adds an entry to its traceback.
bool raise_dropped_error() noexcept {
  if (returned_error == nullptr) return false;
  const auto error = py::reinterpret_steal<py::object>(std::exchange(returned_error, nullptr));
  const auto before = py::reinterpret_steal<py::object>(std::exchange(returned_trace, nullptr));
  const auto now = py::reinterpret_steal<py::object>(PyException_GetTraceback(error.ptr()));
  if (!now.is(before)) return false;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  return true;
}

// Checks for Ctrl-C at most every 50 ms: taking the GIL from a busy Python thread can take 5 ms.
bool signal_pending() {
  if (!is_main_thread()) return false;
  const auto now = Clock::now();
  if (returned_error == nullptr && now - last_signal_check < std::chrono::milliseconds(50)) return false;
  last_signal_check = now;
  const auto check = [] { return raise_dropped_error() || PyErr_CheckSignals() != 0; };
  if (holds_gil()) return check();
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool pending = check();
  PyGILState_Release(state);
  return pending;
}

// The forking thread is the main thread of a forked child.
class MainThreadAtFork final : AtFork {
  void in_child() override {
    main_thread = PyThread_get_thread_ident();
    returned_error = nullptr;  // of the thread that was the main one
  }
};
MainThreadAtFork g_main_thread_at_fork;

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

// As sleeping_at_exit, for Python. Hidden from the address sanitizer: greenlet copies the stack with this frame away
// and back, which is not an access out of bounds.
__attribute__((no_sanitize("address"))) PyObject* call_sleeping_at_exit(PyObject*, PyObject* const* args,
                                                                        Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "call_sleeping_at_exit: expected function and x");
    return nullptr;
  }
  try {
    return PyObject_CallOneArg(args[0], args[1]);
  } catch (abi::__forced_unwind&) {
    sleep_to_the_end();
  }
}

PyMethodDef g_functions[] = {
    {"call_sleeping_at_exit", fast(&call_sleeping_at_exit), METH_FASTCALL,
     "call_sleeping_at_exit(function: object, x: object) -> object\n\n"
     R"(Calls function(x), and lets the thread sleep forever if CPython ends it meanwhile, at interpreter exit.

Otherwise CPython would unwind the frames of other extensions that called this function.
)"},
    {nullptr, nullptr, 0, nullptr}};

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
  // then use memory that was released.
  if (Py_IsInitialized() == 0 && !is_main_thread()) sleep_to_the_end();
  sleeping_at_exit([&] { state_ = PyGILState_Ensure(); });
}

AcquireGil::~AcquireGil() { PyGILState_Release(state_); }

void raise_again_if_dropped() noexcept {
  py::object error = take_error();
  if (is_main_thread()) {
    py::reinterpret_steal<py::object>(std::exchange(returned_error, Py_NewRef(error.ptr())));
    py::reinterpret_steal<py::object>(std::exchange(returned_trace, PyException_GetTraceback(error.ptr())));
    // If the interpreter's list is full, the next wait raises it.
    Py_AddPendingCall([](void*) { return raise_dropped_error() ? -1 : 0; }, nullptr);
  }
  restore_error(std::move(error));
}

void install_gil_guards(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  check(PyModule_AddFunctions(internal.ptr(), g_functions));
  set_interrupt_hook(&signal_pending);
  set_blocking_call_hook(&run_without_gil);
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::set_gil_hook(&holds_gil);
#endif
  bind_python_owners(module);
  internal.def("close", &shut_down_at_exit, "Ends all workers, within a time limit. Registered with atexit.");
  py::module_::import("atexit").attr("register")(internal.attr("close"));
  internal.def(
      "shutdown",
      [] {
        WorkerPool::python().shutdown();
        WorkerPool::process().shutdown();
      },
      py::call_guard<ReleaseGil>(), "Ends the workers after the copies in progress.");
}

}  // namespace artifex_devices::bindings
