// SPDX-License-Identifier: Apache-2.0
// The table of reshard costs beside the checkout on development machines and in CI.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "artifex_devices/partition/ingress_totals.h"
#include "artifex_devices/partition/reshard_plan.h"

namespace artifex_devices {
namespace {

/// The text of a value in one line of JSON: a list with its brackets, or what stands before the next comma.
std::string value_of(const std::string& line, const std::string& key) {
  const std::string marker = "\"" + key + "\":";
  const size_t found = line.find(marker);
  if (found == line.npos) return "";
  const size_t begin = found + marker.size();
  int depth = 0;
  size_t end = begin;
  for (; end < line.size() && (depth > 0 || (line[end] != ',' && line[end] != '}')); ++end) {
    depth += line[end] == '[' ? 1 : line[end] == ']' ? -1 : 0;
  }
  return line.substr(begin, end - begin);
}

/// [["x","y"],[]] as a spec.
PartitionSpec read_spec(const std::string& json) {
  std::vector<std::vector<AxisName>> dimensions;
  for (size_t i = 1; i < json.size(); ++i) {
    if (json[i] == '[') dimensions.emplace_back();
    if (json[i] != '"') continue;
    const size_t end = json.find('"', i + 1);
    dimensions.back().emplace_back(json.substr(i + 1, end - i - 1));
    i = end;
  }
  std::vector<SpecEntry> entries;
  for (auto& axes : dimensions) entries.emplace_back(std::move(axes));
  return PartitionSpec(std::move(entries));
}

/// [1,2,3]
std::vector<int64_t> read_numbers(const std::string& json) {
  std::vector<int64_t> numbers;
  std::stringstream stream(json.substr(1, json.size() - 2));
  for (std::string number; std::getline(stream, number, ',');) numbers.push_back(std::stoll(number));
  return numbers;
}

TEST(ReshardBytes, MatchAllCasesOfTheTable) {
  std::ifstream file(ARTIFEX_SHARED_DATA "/topologies/reshard_bytes.json");
  if (!file) GTEST_SKIP() << "the table of reshard costs is not beside this checkout";
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 2});
  const Dims shape{16, 16};
  const int64_t itemsize = 4;
  std::vector<int64_t> devices(8);
  std::iota(devices.begin(), devices.end(), int64_t{0});
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (value_of(line, "src").empty()) continue;
    ++rows;
    SCOPED_TRACE(line);
    const TileGrid from(mesh, read_spec(value_of(line, "src")));
    const TileGrid to(mesh, read_spec(value_of(line, "dst")));
    const ShardDomains::Names names{.operation = "test"};
    const ShardDomains source(from, shape, Uneven::kError, names);
    const ShardDomains destination(to, shape, Uneven::kError, names);
    const int64_t total = std::stoll(value_of(line, "total_ingress"));
    const std::vector<int64_t> ingress = ingress_bytes(source, devices, destination, devices, itemsize);
    EXPECT_EQ(ingress, read_numbers(value_of(line, "ingress_per_device")));
    EXPECT_EQ(std::accumulate(ingress.begin(), ingress.end(), int64_t{0}), total);
    const int64_t most = *std::ranges::max_element(ingress);
    const int64_t receivers = std::ranges::count_if(ingress, [](int64_t bytes) { return bytes > 0; });
    EXPECT_EQ(ingress_totals(source, destination, itemsize), (IngressTotals{total, most, receivers}));

    // With a memory for each device the plan moves just that, and nothing at all where the shards are right already.
    BufferPlaces source_places;
    BufferPlaces destination_places;
    for (int64_t p = 0; p < 8; ++p) {
      source_places.push_back({from.tile(Position(p)), DeviceId(p), ArenaIndex(p)});
      destination_places.push_back({to.tile(Position(p)), DeviceId(p), ArenaIndex(p)});
    }
    const ReshardPlan plan(source, source_places, destination, destination_places, itemsize);
    EXPECT_EQ(plan.bytes_over(LinkKind::kSameArena), total);
    EXPECT_EQ(plan.copy_count() == 0, value_of(line, "pure_alias") == "true");
  }
  EXPECT_EQ(rows, 121);
}

}  // namespace
}  // namespace artifex_devices
