// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace artifex_devices {

/// The contents of model.safetensors.index.json, which lists the tensors of a model in several files.
struct WeightIndex {
  std::map<std::string, std::string> files;  // name of the file in the same folder, by name of the tensor
  std::optional<double> total_size;          // bytes of all tensors, if the index states them
};

/// Reads an index from untrusted text. Throws InvalidArgument `<what>: ...` for other JSON, a tensor that is listed
/// twice, and files that are not safetensors files of the same folder.
WeightIndex parse_weight_index(std::string_view text, std::string_view what);

}  // namespace artifex_devices
