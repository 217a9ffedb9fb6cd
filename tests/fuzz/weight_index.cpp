// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/weight_index.h"

#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const auto& [tensor, file] : parse_weight_index(fuzz::text_of(data, size), "index").files) {
      fuzz::require(file.ends_with(".safetensors") && file.find('/') == std::string::npos);
      fuzz::require(tensor.size() + file.size() <= size);
    }
  } catch (const InvalidArgument&) {
  }
  return 0;
}
