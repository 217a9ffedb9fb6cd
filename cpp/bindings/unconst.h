// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace artifex_devices::bindings {

/// pybind11 holders are not const; nothing bound changes what is in them.
template <class T>
std::shared_ptr<T> unconst(std::shared_ptr<const T> pointer) {
  return std::const_pointer_cast<T>(std::move(pointer));
}

}  // namespace artifex_devices::bindings
