// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/weight_index.h"

#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/checkpoint_files.h"
#include "artifex_devices/checkpoint/json_reader.h"

namespace artifex_devices {
namespace {

void check_file(const std::string& file, std::string_view what) {
  if (file.ends_with(kSafetensorsSuffix) && file.find_first_of(std::string_view("/\0", 2)) == std::string::npos) return;
  throw_error(
      "{}: it names the file {}; expected names of safetensors files in the same folder; download the file again", what,
      python_repr(file));
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = result.ec == std::errc() && result.ptr == text.data() + text.size() && std::isfinite(value);
  return is_number ? std::optional(value) : std::nullopt;
}

std::optional<double> read_total_size(JsonReader& json) {
  std::optional<double> total;
  std::string name;
  json.begin_object();
  for (bool first = true; json.next_member(first, name);) {
    const std::string_view value = json.raw();  // some writers add other values
    if (name == "total_size") total = number_of(value);
  }
  return total;
}

}  // namespace

WeightIndex parse_weight_index(std::string_view text, std::string_view what) {
  JsonReader json(text, what);
  WeightIndex index;
  bool has_map = false;
  std::string name;
  json.begin_object();
  for (bool first = true; json.next_member(first, name);) {
    if (name == "metadata") {
      const std::string_view metadata = json.raw();
      JsonReader inner(metadata, what);
      if (metadata.starts_with('{')) index.total_size = read_total_size(inner);
    } else if (name == "weight_map" && !std::exchange(has_map, true)) {
      std::string tensor;
      json.begin_object();
      for (bool is_first = true; json.next_member(is_first, tensor);) {
        std::string file = json.string();
        check_file(file, what);
        if (!index.files.emplace(tensor, std::move(file)).second)
          throw_error("{}: it lists {} twice; expected each tensor once; download the file again", what,
                      python_repr(tensor));
      }
    } else {
      json.skip();
    }
  }
  json.end();
  if (!has_map)
    throw_error("{}: it has no \"weight_map\"; expected an index of safetensors files; download the file again", what);
  return index;
}

}  // namespace artifex_devices
