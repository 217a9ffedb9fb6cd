// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gil.h"

namespace artifex_devices::bindings {

/// Guards data of the bindings that the GIL guards in other builds of Python, where it does nothing and costs nothing.
/// Never held while Python code may run: the last reference to an object is dropped after the unlock. A waiting thread
/// is detached from the interpreter, so that it does not delay a collection or a fork, which stop all attached threads
/// (docs/decisions/0044).
class GilMutex {
 public:
#ifdef Py_GIL_DISABLED
  void lock() noexcept {
    sleeping_at_exit([&] { PyMutex_Lock(&mutex_); });
  }
  void unlock() noexcept { PyMutex_Unlock(&mutex_); }

 private:
  PyMutex mutex_{};
#else
  void lock() noexcept {}
  void unlock() noexcept {}
#endif
};

}  // namespace artifex_devices::bindings
