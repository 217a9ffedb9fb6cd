// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/file.h"

namespace artifex_devices {

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";

/// The files of one checkpoint.
struct CheckpointFiles {
  std::vector<std::string> paths;  // of the safetensors files, by name; empty with an index, which names them
  std::string manifest;            // path of checkpoint.json; empty without one
  std::string index;               // path of an index of safetensors files, such as model.safetensors.index.json
  /// Whether the names say that the files are one checkpoint. Other files must state which boxes of arrays they hold.
  bool are_one_set = true;
  /// Missing process numbers among files shard-N-model-1-of-1.safetensors.
  std::vector<int64_t> missing_shards;
};

/// Opens the folder of a checkpoint, or the folder that contains the index `path`. Returns null for another file.
/// Throws FileError, with ENOENT and the cause if the path does not exist; `existed` is whether it was there before.
std::shared_ptr<const Folder> open_checkpoint_folder(const std::string& path, std::string_view operation, bool existed);

/// Finds the files of a checkpoint: a folder, one safetensors file, or an index of safetensors files. `folder` is from
/// open_checkpoint_folder. In a folder checkpoint.json decides, then the index, then the names:
/// model-00001-of-00002.safetensors needs its second file. Throws FileError with ENOENT for a folder without a
/// checkpoint, and InvalidArgument if files are missing or the folder has several indexes.
CheckpointFiles find_checkpoint_files(const std::string& path, const Folder* folder, std::string_view operation);

}  // namespace artifex_devices
