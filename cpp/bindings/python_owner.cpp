// SPDX-License-Identifier: Apache-2.0
#include "python_owner.h"

#include <mutex>
#include <new>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "gil.h"
#include "gil_mutex.h"

namespace artifex_devices::bindings {

/// One owner, and its entry in the queue: dropping it allocates nothing.
class PythonOwner {
 public:
  PythonOwner(void* what, void (*release)(void*)) noexcept : what_(what), release_(release) {}

  /// Calls `release` if this thread has the GIL, else queues it. For any thread.
  static void drop(PythonOwner* owner) noexcept;

  /// Removes and returns the newest owner of the queue, or null. Needs the GIL.
  static PythonOwner* take() noexcept {
    static constinit GilMutex mutex;  // one thread at a time removes
    const std::lock_guard lock(mutex);
    PythonOwner* first = g_dropped_owners.load(std::memory_order_acquire);
    while (first != nullptr &&
           !g_dropped_owners.compare_exchange_weak(first, first->next_, std::memory_order_acq_rel)) {
    }
    return first;
  }

  /// Releases and deletes this owner. Needs the GIL.
  void end() noexcept {
    void* const what = what_;
    void (*const release)(void*) = release_;
    delete this;
    try {
      release(what);
    } catch (...) {  // a DLPack deleter must not throw, and the dropping thread cannot report an error
    }
  }

 private:
  void* what_;
  void (*release_)(void*);
  PythonOwner* next_ = nullptr;
};

namespace {

// Number of forks at the time of the outstanding pending call, plus one; 0 without one. A pending call requested during
// a fork may be lost in the child, which therefore requests it again.
constinit std::atomic<int64_t> g_pending_in{0};

int run_pending_call(void*) {
  g_pending_in.exchange(0);  // before the queue is read: a later owner requests the next call
  release_dropped_owners();
  return 0;
}

// Py_AddPendingCall needs no GIL. If the interpreter's list is full, the next owner or call of the library releases
// them.
void request_pending_call() noexcept {
  const int64_t now = fork_generation() + 1;
  if (g_pending_in.exchange(now) == now) return;
  // The interpreter frees its list at exit, while this thread may be in Py_AddPendingCall.
  if (exit_has_begun() || Py_AddPendingCall(&run_pending_call, nullptr) != 0) g_pending_in.store(0);
}

}  // namespace

void PythonOwner::drop(PythonOwner* owner) noexcept {
  no_lock_held("the release of a Python owner");
  if (holds_gil()) {
    const py::error_scope keep_error;
    owner->end();
    return;
  }
  owner->next_ = g_dropped_owners.load(std::memory_order_relaxed);
  while (!g_dropped_owners.compare_exchange_weak(owner->next_, owner, std::memory_order_acq_rel)) {
  }
  request_pending_call();
}

void release_all_dropped_owners() noexcept {
  no_lock_held("the release of Python owners");
  const py::error_scope keep_error;
  while (PythonOwner* const owner = PythonOwner::take()) owner->end();
}

std::shared_ptr<void> python_owner(void* what, void (*release)(void*)) {
  auto* owner = new (std::nothrow) PythonOwner(what, release);
  if (owner == nullptr) {
    release(what);
    throw std::bad_alloc();
  }
  return {owner, &PythonOwner::drop};
}

std::shared_ptr<void> python_owner(py::object object) {
  return python_owner(object.release().ptr(), [](void* owned) { Py_DECREF(static_cast<PyObject*>(owned)); });
}

void bind_python_owners(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("release_dropped_owners", &release_dropped_owners,
               "Releases borrowed memory that workers have dropped. Calls of the library do so too.");
  py::module_::import("os").attr("register_at_fork")(py::arg("after_in_child") =
                                                         internal.attr("release_dropped_owners"));
}

}  // namespace artifex_devices::bindings
