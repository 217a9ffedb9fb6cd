// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/file_rows.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "artifex_devices/base/file.h"

namespace artifex_devices {
namespace {

constexpr int64_t kGap = int64_t{64} << 10;  // bytes that are read and dropped, where that is cheaper than another call
constexpr size_t kMostParts = 1000;          // of one call; Linux takes 1024

/// Returns what is left of `parts` after their first bytes.
std::span<iovec> after(std::span<iovec> parts, size_t bytes) {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + bytes;
    parts.front().iov_len -= bytes;
  }
  return parts;
}

/// Fills `parts`, which it changes, from the bytes at `offset`. Returns false at the end of the file.
bool fill(int descriptor, std::span<iovec> parts, int64_t offset) {
  while (!parts.empty()) {
    const ssize_t got = ::preadv(descriptor, parts.data(), static_cast<int>(parts.size()), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int code = errno;
      const std::string reason = std::generic_category().message(code);
      throw FileError(fmt::format("data.source: cannot read at byte {}: {}", offset, reason), code);
    }
    if (got == 0) return false;
    offset += got;
    parts = after(parts, static_cast<size_t>(got));
  }
  return true;
}

}  // namespace

bool read_rows(const FileRows& rows, std::span<const int64_t> numbers, std::byte* out) {
  if (rows.bytes == 0) return true;
  std::vector<std::byte> dropped;
  std::vector<iovec> parts;
  for (size_t i = 0; i < numbers.size();) {
    const int64_t first = numbers[i];
    parts.clear();
    while (true) {
      parts.push_back({out, static_cast<size_t>(rows.bytes)});
      out += rows.bytes;
      ++i;
      if (i == numbers.size() || parts.size() >= kMostParts) break;
      const int64_t skipped = numbers[i] - numbers[i - 1] - 1;
      if (skipped > kGap / rows.bytes) break;
      if (skipped > 0) {
        dropped.resize(static_cast<size_t>(kGap));
        parts.push_back({dropped.data(), static_cast<size_t>(skipped * rows.bytes)});
      }
    }
    if (!fill(rows.descriptor, parts, rows.offset + first * rows.bytes)) return false;
  }
  return true;
}

}  // namespace artifex_devices
