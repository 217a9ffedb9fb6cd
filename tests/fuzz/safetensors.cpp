// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/safetensors.h"

#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

// The first byte is the number of bytes of data, the others are the header.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view header = fuzz::text_of(data + 1, size - 1);
  const int64_t file_bytes = 8 + static_cast<int64_t>(header.size()) + data[0];
  try {
    int64_t bytes = 0;
    for (const StoredTensor& tensor : parse_safetensors(header, file_bytes, "file")) {
      fuzz::require(tensor.begin <= tensor.end && tensor.end <= file_bytes);
      fuzz::require(!tensor.origin || tensor.origin->size() == tensor.shape.size());
      fuzz::require(static_cast<int64_t>(tensor.checksums.size()) <= tensor.end - tensor.begin);
      bytes += tensor.end - tensor.begin;
    }
    fuzz::require(bytes == data[0]);
  } catch (const InvalidArgument&) {
  }
  return 0;
}
