// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/error.h"
#include "artifex_devices/checkpoint/stored_checkpoint.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Manifest manifest = parse_manifest(fuzz::text_of(data, size), "checkpoint.json");
    fuzz::require(manifest.process_count >= 1);
    fuzz::require(manifest.values.starts_with('{') && manifest.values.size() <= size);
    for (const Manifest::Array& array : manifest.arrays) {
      fuzz::require(array.shape.size() <= 64);
      for (const int64_t extent : array.shape) fuzz::require(extent >= 0);
    }
  } catch (const InvalidArgument&) {
  }
  return 0;
}
