// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/checkpoint/stored_checkpoint.h"

namespace artifex_devices {

/// A box of an array whose elements are in a file of another format, row-major and one after another.
struct LocatedPart {
  std::string name;  // of the array
  DType dtype = DType::kFloat32;
  Dims shape;  // of the array
  IndexDomain box;
  size_t file = 0;    // number of its file
  int64_t begin = 0;  // of its bytes in the file
};

/// A checkpoint of these parts, so that read_boxes reads them. Throws InvalidArgument for parts outside their file or
/// array, parts of one name with several shapes or dtypes, and arrays with overlapping or missing parts.
StoredCheckpoint checkpoint_of_parts(std::vector<std::string> paths, const std::vector<LocatedPart>& parts,
                                     std::string_view operation);

}  // namespace artifex_devices
