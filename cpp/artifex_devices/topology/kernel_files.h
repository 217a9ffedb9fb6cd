// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

// Small files of /proc, /sys and cgroups. A missing file is not an error: containers may hide it. A lack of file
// descriptors or memory is an error, because the process may use the contents for the rest of its life.

/// The start of a file, or why it cannot be read.
struct KernelFile {
  std::string text;
  int error = 0;  // errno; 0 for a file that was read

  /// "/proc/meminfo cannot be read (Permission denied)", "/proc/meminfo is empty", or "".
  std::string problem(std::string_view path) const;
};

/// Throws FileError if no file can be opened now, and std::bad_alloc.
KernelFile read_kernel_file(const std::string& path, size_t most_bytes = size_t{1} << 24);

/// For the errno of a call that opens a file: throws as read_kernel_file does, and returns for other errors.
void refuse_shortage(int error, const std::string& path);

/// Throws FileError unless the process can open `count` files more.
void require_descriptors(int count);

/// The bytes in the line "MemTotal:  123 kB" of a file such as /proc/meminfo, or 0 without one. `key`: "MemTotal:".
int64_t bytes_in_table(std::string_view text, std::string_view key);

}  // namespace artifex_devices
