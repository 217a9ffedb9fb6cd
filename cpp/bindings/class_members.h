// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "pybind.h"
#include "python_modules.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

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

/// The list of `convert(item)` for each item.
template <class Range, class Convert>
py::list make_list(const Range& range, Convert convert) {
  py::list result;
  for (const auto& item : range) result.append(convert(item));
  return result;
}

/// `__eq__` of a class of values: false for objects of other classes.
template <class T>
bool equals(const T& self, py::handle other) {
  return py::isinstance<T>(other) && self == other.cast<const T&>();
}

/// The result of `__reduce__`: a function of artifex_devices.unpickle and its arguments.
template <class... Arguments>
py::tuple pickled_by(const char* function, Arguments&&... arguments) {
  return py::make_tuple(py::module_::import(python_modules::kUnpickle).attr(function),
                        py::make_tuple(std::forward<Arguments>(arguments)...));
}

}  // namespace artifex_devices::bindings
