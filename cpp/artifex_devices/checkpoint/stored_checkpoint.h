// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/checkpoint/read_boxes.h"
#include "artifex_devices/checkpoint/safetensors.h"
#include "artifex_devices/checkpoint/stored_files.h"

namespace artifex_devices {

/// The contents of checkpoint.json.
struct Manifest {
  struct Array {
    std::string name;
    Dims shape;
    DType dtype;
  };
  int64_t process_count = 0;
  std::vector<Array> arrays;
  std::string values = "{}";  // JSON of the Python values
  std::string paths = "{}";   // JSON of the paths of the leaves whose path is not just their name
};

/// Reads checkpoint.json from untrusted text. Throws InvalidArgument `<what>: ...` for everything that checkpoint.save
/// does not write.
Manifest parse_manifest(std::string_view text, std::string_view what);

/// One array of a checkpoint.
struct StoredArray {
  std::string name;
  Dims shape;
  /// Whether no file states the shape. The shape is then derived from the existing parts, and a missing last part
  /// cannot be noticed.
  bool is_shape_derived = false;
  std::optional<DType> dtype;   // nothing: `type` has no dtype here
  std::string type;             // in the files; empty without a part
  std::vector<size_t> tensors;  // numbers of its parts
};

/// The headers of all files of a checkpoint.
struct StoredCheckpoint {
  StoredFiles files;
  std::vector<StoredTensor> tensors;
  std::vector<size_t> file_of_tensor;
  std::vector<StoredArray> arrays;
  std::optional<Manifest> manifest;  // its arrays have become `arrays`

  /// Reads the headers of a folder, of one safetensors file, or of the files of an index, again if a save replaces the
  /// folder meanwhile. Interruptible. Throws FileError, also if saves keep replacing the folder. Throws InvalidArgument
  /// for files that are damaged, belong to several checkpoints or are not listed in the index, and for arrays with
  /// overlapping or missing parts.
  static StoredCheckpoint open(const std::string& path, std::string_view operation);

  /// A request to read array `number`, without destinations; the parts refer to this checkpoint.
  ReadRequest request(size_t number) const;
};

}  // namespace artifex_devices
