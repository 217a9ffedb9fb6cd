// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/base/error.h"

namespace artifex_devices {

/// A request that no algorithm here can fulfil.
class NotImplemented : public Error {  // NotImplementedError
 public:
  using Error::Error;
};

/// Input for which JAX raises AssertionError.
class AssertionFailed : public Error {  // AssertionError
 public:
  using Error::Error;
};

}  // namespace artifex_devices
