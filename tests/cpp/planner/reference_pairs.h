// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "artifex_devices/partition/partition_spec.h"

namespace artifex_devices::planner {

inline PartitionSpec spec_of(const std::vector<std::vector<std::string>>& dimensions) {
  std::vector<SpecEntry> entries;
  for (const auto& names : dimensions) {
    std::vector<AxisName> axes;
    for (const std::string& name : names) axes.emplace_back(name);
    entries.emplace_back(std::move(axes));
  }
  return PartitionSpec(std::move(entries));
}

/// One line of the table of reshard costs: a 16 x 16 float32 array on a mesh of x = 4, y = 2.
struct ReferencePair {
  std::string line;
  PartitionSpec source;
  PartitionSpec destination;

  /// The text of a value: a list with its brackets, or what stands before the next comma.
  std::string value(const std::string& key) const {
    const std::string marker = "\"" + key + "\":";
    const size_t begin = line.find(marker) + marker.size();
    int depth = 0;
    size_t end = begin;
    for (; end < line.size() && (depth > 0 || (line[end] != ',' && line[end] != '}')); ++end) {
      depth += line[end] == '[' ? 1 : line[end] == ']' ? -1 : 0;
    }
    return line.substr(begin, end - begin);
  }
  int64_t number(const std::string& key) const { return std::stoll(value(key)); }
  std::vector<int64_t> numbers(const std::string& key) const {
    const std::string json = value(key);
    std::vector<int64_t> result;
    std::stringstream stream(json.substr(1, json.size() - 2));
    for (std::string text; std::getline(stream, text, ',');) result.push_back(std::stoll(text));
    return result;
  }
  PartitionSpec spec(const std::string& key) const {
    const std::string json = value(key);  // [["x","y"],[]]
    std::vector<std::vector<std::string>> dimensions;
    for (size_t i = 1; i < json.size(); ++i) {
      if (json[i] == '[') dimensions.emplace_back();
      if (json[i] != '"') continue;
      const size_t end = json.find('"', i + 1);
      dimensions.back().push_back(json.substr(i + 1, end - i - 1));
      i = end;
    }
    return spec_of(dimensions);
  }
};

/// The table, or nothing when it is not beside the checkout.
inline std::vector<ReferencePair> reference_pairs() {
  std::ifstream file(ARTIFEX_SHARED_DATA "/topologies/reshard_bytes.json");
  std::vector<ReferencePair> pairs;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"src\":") == line.npos) continue;
    ReferencePair pair{line, {}, {}};
    pair.source = pair.spec("src");
    pair.destination = pair.spec("dst");
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace artifex_devices::planner
