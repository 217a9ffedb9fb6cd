// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>

#include "artifex_devices/device/client.h"
#include "artifex_devices/sharding/mesh.h"
#include "gil_mutex.h"

#ifdef Py_GIL_DISABLED

// Equal meshes are one Python object, and so is each device and client. pybind11 looks for the object of a C++ object
// and then creates one; without the GIL, two threads would create two.
namespace artifex_devices::bindings {
inline constinit GilMutex g_interned_mutex;
}

namespace pybind11::detail {

template <class T>
class interned_caster : public copyable_holder_caster<T, std::shared_ptr<T>> {
 public:
  static handle cast(const std::shared_ptr<T>& source, return_value_policy policy, handle parent) {
    const std::lock_guard lock(artifex_devices::bindings::g_interned_mutex);
    return copyable_holder_caster<T, std::shared_ptr<T>>::cast(source, policy, parent);
  }
};
template <>
class type_caster<std::shared_ptr<artifex_devices::Mesh>> : public interned_caster<artifex_devices::Mesh> {};
template <>
class type_caster<std::shared_ptr<artifex_devices::Device>> : public interned_caster<artifex_devices::Device> {};
template <>
class type_caster<std::shared_ptr<artifex_devices::Client>> : public interned_caster<artifex_devices::Client> {};

}  // namespace pybind11::detail

#endif
