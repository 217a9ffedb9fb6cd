// SPDX-License-Identifier: Apache-2.0
// pybind11, for all files of the bindings: they include this file in its place.
#pragma once

#include <pybind11/pybind11.h>

#ifdef Py_GIL_DISABLED

#include <memory>
#include <mutex>
#include <type_traits>

#include "gil_mutex.h"

namespace artifex_devices::bindings {
inline constinit GilMutex g_cast_mutex;
}

namespace pybind11::detail {

/// Casts of objects that C++ shares. pybind11 (3.1) looks for the Python object of a C++ object, then makes and
/// registers one, and only then gives it its value. Without the GIL, two threads could make two, or one could find the
/// other's before it has its value.
template <class T>
  requires std::is_class_v<T>
class type_caster<std::shared_ptr<T>> : public copyable_holder_caster<T, std::shared_ptr<T>> {
 public:
  static handle cast(const std::shared_ptr<T>& source, return_value_policy policy, handle parent) {
    const std::lock_guard lock(artifex_devices::bindings::g_cast_mutex);
    return copyable_holder_caster<T, std::shared_ptr<T>>::cast(source, policy, parent);
  }
};

}  // namespace pybind11::detail

#endif
