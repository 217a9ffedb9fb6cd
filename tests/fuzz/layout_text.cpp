// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/layout.h"
#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Layout layout = Layout::parse(fuzz::text_of(data, size));
    fuzz::require(Layout::parse(layout.to_string()) == layout);
    Dims shape(layout.rank(), 3);
    if (size > 0 && layout.rank() > 0) shape[0] = data[size - 1];  // also 0
    int64_t elements = 1;
    for (const int64_t each : layout.physical_shape(shape, "fuzz")) elements *= each;
    fuzz::require(elements >= 0);
    fuzz::require(layout.byte_size(shape, DType::kFloat32, "fuzz") >= 0);
  } catch (const InvalidArgument&) {
  }
  return 0;
}
