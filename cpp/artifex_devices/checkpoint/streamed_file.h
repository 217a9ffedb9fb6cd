// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "artifex_devices/base/file.h"

namespace artifex_devices {

/// A new file that is written from its beginning to its end, with checksums. Its first bytes may be written last.
/// Errors are those of File.
class StreamedFile {
 public:
  StreamedFile(const std::string& path, std::string_view operation, int64_t head_bytes)
      : file_(File::create(path, operation)), bytes_(head_bytes) {}

  /// Appends bytes, and lets the system start to write them to storage.
  void write(const std::byte* data, int64_t bytes);
  /// Writes the first bytes, and waits until the storage has everything.
  void finish(std::string_view head);
  /// Bytes so far, with the head.
  int64_t bytes() const noexcept { return bytes_; }
  /// CRC-32C of the bytes behind the head.
  uint32_t checksum() const noexcept { return checksum_; }

 private:
  File file_;
  int64_t bytes_;
  uint32_t checksum_ = 0;
};

}  // namespace artifex_devices
