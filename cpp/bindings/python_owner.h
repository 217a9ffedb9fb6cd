// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>

namespace artifex_devices::bindings {

namespace py = pybind11;

// Owners of borrowed memory whose release needs the GIL: an ndarray that an Array shows, the tensor of a DLPack
// capsule. Any thread may drop the last reference, a worker too; none of them waits for the GIL (docs/decisions/0005).

/// An owner that calls `release(what)` with the GIL when its last reference is dropped: at once on a thread that has
/// the GIL. Elsewhere the call is queued, and made by the next of release_dropped_owners() and a pending call of the
/// interpreter. Needs the GIL; where it throws std::bad_alloc it has called `release(what)`.
std::shared_ptr<void> python_owner(void* what, void (*release)(void*));

/// An owner of a reference to `object`.
std::shared_ptr<void> python_owner(py::object object);

class PythonOwner;
inline constinit std::atomic<PythonOwner*> g_dropped_owners{nullptr};  // newest first
void release_all_dropped_owners() noexcept;

/// Releases the queued owners. Finalizers run in it: call it with the GIL and without a lock of the library, where
/// Python code may run. Costs one load when there is none.
inline void release_dropped_owners() noexcept {
  if (g_dropped_owners.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    release_all_dropped_owners();
}

/// Lets a forked child release what was queued before the fork. Once, from the module's initialisation.
void bind_python_owners(py::module_& module);

}  // namespace artifex_devices::bindings
