// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace artifex_devices {

/// Rows of equal size in an open file, which the caller closes.
struct FileRows {
  int descriptor;
  int64_t offset;  // of row 0
  int64_t bytes;   // of a row
};

/// Copies rows, whose numbers ascend, to `out`, one after the other. Rows with a gap of at most 64 KiB between them are
/// read by one call. Returns false if the file ends before the last byte. Throws FileError.
bool read_rows(const FileRows& rows, std::span<const int64_t> numbers, std::byte* out);

}  // namespace artifex_devices
