// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

// Owners of borrowed memory whose release needs the GIL: an ndarray aliased by an Array, the tensor of a DLPack
// capsule. Any thread, also a worker, may drop the last reference; none waits for the GIL (docs/decisions/0005).

/// An owner that calls `release(what)` with the GIL when its last reference is dropped: at once on a thread that has
/// the GIL, else queued for the next release_dropped_owners() or pending call of the interpreter. Needs the GIL. If it
/// throws std::bad_alloc it has called `release(what)`.
std::shared_ptr<void> python_owner(void* what, void (*release)(void*));

/// An owner of a reference to `object`.
std::shared_ptr<void> python_owner(py::object object);

class PythonOwner;
inline constinit std::atomic<PythonOwner*> g_dropped_owners{nullptr};  // newest first
void release_all_dropped_owners() noexcept;

/// Releases the queued owners. May run finalizers: call it with the GIL and without a lock of the library. Costs one
/// load if the queue is empty.
inline void release_dropped_owners() noexcept {
  if (g_dropped_owners.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    release_all_dropped_owners();
}

/// Makes a forked child release owners queued before the fork. Called once, at import.
[[gnu::cold]] void bind_python_owners(py::module_& module);

}  // namespace artifex_devices::bindings
