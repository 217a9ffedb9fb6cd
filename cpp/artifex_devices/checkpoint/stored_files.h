// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/base/file.h"

namespace artifex_devices {

/// The safetensors files of a checkpoint while it is read.
///
/// A save may replace the folder meanwhile: it renames the folder, then removes its files. Files are opened in the
/// folder that the caller opened, so they never belong to two saves. The first kOpen files stay open, so their bytes
/// can be read after they were removed; another file that is gone is a FileError with the code ESTALE.
class StoredFiles {
 public:
  /// Number of files that stay open: most checkpoints have fewer, and processes may usually open 1024.
  static constexpr size_t kOpen = 64;

  StoredFiles() = default;
  /// `folder` has the last names of all paths. If it is null, the paths themselves are opened.
  StoredFiles(std::vector<std::string> paths, std::shared_ptr<const Folder> folder)
      : paths_(std::move(paths)), folder_(std::move(folder)) {}

  const std::vector<std::string>& paths() const noexcept { return paths_; }

  /// Opens file `number` for the first time. Throws FileError, also if it is missing.
  std::shared_ptr<const File> open_first(size_t number, std::string_view operation);
  /// Opens file `number`, which open_first has opened.
  std::shared_ptr<const File> open(size_t number, std::string_view operation) const;

  /// Bytes of arrays that were read from the files so far. Thread-safe, as is count_read.
  int64_t bytes_read() const noexcept { return bytes_read_->load(std::memory_order_relaxed); }
  void count_read(int64_t bytes) const noexcept { bytes_read_->fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::vector<std::string> paths_;
  std::shared_ptr<const Folder> folder_;
  std::vector<std::shared_ptr<const File>> files_;  // that stay open
  std::shared_ptr<std::atomic<int64_t>> bytes_read_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace artifex_devices
