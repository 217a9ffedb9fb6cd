// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices::bindings {

/// A member function without arguments as a function of a reference, for `py::class_::def`. pybind11 passes None to a
/// member function as a null pointer, and refuses it for a reference.
template <class T, class R>
auto by_reference(R (T::*member)() const) {
  return [member](const T& self) -> R { return (self.*member)(); };
}

template <class T, class R>
auto by_reference(R (T::*member)()) {
  return [member](T& self) -> R { return (self.*member)(); };
}

}  // namespace artifex_devices::bindings
