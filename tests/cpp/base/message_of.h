// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices {

/// What the error says that `body` throws; "(no error)" where it throws none.
inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace artifex_devices
