// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_files.h"

#include <fmt/format.h>

#include <cerrno>

namespace artifex_devices {

std::shared_ptr<const File> StoredFiles::open_first(size_t number, std::string_view operation) {
  auto file = std::make_shared<const File>(File::open(paths_[number], operation, folder_.get()));
  if (files_.size() == number && number < kOpen) files_.push_back(file);
  return file;
}

std::shared_ptr<const File> StoredFiles::open(size_t number, std::string_view operation) const {
  if (number < files_.size()) return files_[number];
  try {
    return std::make_shared<const File>(File::open(paths_[number], operation, folder_.get()));
  } catch (const FileError& error) {
    if (error.code() != ENOENT) throw;
    throw FileError(fmt::format("{}: {} was removed or replaced while the checkpoint was read; expected a checkpoint "
                                "that stays; call it again",
                                operation, paths_[number]),
                    ESTALE);
  }
}

}  // namespace artifex_devices
