// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/layout.h"
#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Layout layout = Layout::parse(fuzz::text_of(data, size));
    fuzz::require(Layout::parse(layout.to_string()) == layout);
  } catch (const InvalidArgument&) {
  }
  return 0;
}
