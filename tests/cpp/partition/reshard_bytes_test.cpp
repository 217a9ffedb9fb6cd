// SPDX-License-Identifier: Apache-2.0
// The table of reshard costs that lies beside the checkout on development machines and in CI.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <regex>

#include "artifex_devices/partition/reshard_plan.h"

namespace artifex_devices {
namespace {

/// [["x","y"],[]] as a spec.
PartitionSpec read_spec(const std::string& json) {
  static const std::regex entry(R"(\[([^\[\]]*)\])");
  static const std::regex axis("\"([^\"]*)\"");
  std::vector<SpecEntry> entries;
  for (std::sregex_iterator at(json.begin() + 1, json.end(), entry), end; at != end; ++at) {
    const std::string names = (*at)[1];
    std::vector<AxisName> axes;
    for (std::sregex_iterator name(names.begin(), names.end(), axis); name != end; ++name)
      axes.emplace_back((*name)[1].str());
    entries.emplace_back(std::move(axes));
  }
  return PartitionSpec(std::move(entries));
}

std::vector<int64_t> read_numbers(const std::string& json) {
  static const std::regex number("-?[0-9]+");
  std::vector<int64_t> numbers;
  for (std::sregex_iterator at(json.begin(), json.end(), number), end; at != end; ++at)
    numbers.push_back(std::stoll(at->str()));
  return numbers;
}

TEST(ReshardBytes, AgreeWithAllCasesOfTheTable) {
  std::ifstream file(ARTIFEX_SHARED_DATA "/topologies/reshard_bytes.json");
  if (!file) GTEST_SKIP() << "the table of reshard costs is not beside this checkout";
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 2});
  const Dims shape{16, 16};
  const int64_t itemsize = 4;
  const std::regex row(
      R"re("src":(\[\[.*?\]\]),"dst":(\[\[.*?\]\]),"ingress_per_device":(\[.*?\]),"total_ingress":(\d+),.*"pure_alias":(true|false))re");
  std::vector<int64_t> devices(8);
  std::iota(devices.begin(), devices.end(), int64_t{0});
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, row)) continue;
    ++rows;
    SCOPED_TRACE(line);
    const TileGrid from(mesh, read_spec(match[1]));
    const TileGrid to(mesh, read_spec(match[2]));
    const ShardDomains::Names names{.operation = "test"};
    const ShardDomains source(from, shape, Uneven::kError, names);
    const ShardDomains destination(to, shape, Uneven::kError, names);
    const int64_t total = std::stoll(match[4]);
    const std::vector<int64_t> ingress = ingress_bytes(source, devices, destination, devices, itemsize);
    EXPECT_EQ(ingress, read_numbers(match[3]));
    EXPECT_EQ(std::accumulate(ingress.begin(), ingress.end(), int64_t{0}), total);

    // With a memory for each device the plan moves just that, and nothing at all where the shards are right already.
    std::vector<BufferPlace> source_places;
    std::vector<BufferPlace> destination_places;
    for (int64_t p = 0; p < 8; ++p) {
      source_places.push_back({from.tile(p), p, static_cast<int32_t>(p)});
      destination_places.push_back({to.tile(p), p, static_cast<int32_t>(p)});
    }
    const ReshardPlan plan = make_reshard_plan(source, source_places, destination, destination_places, itemsize);
    EXPECT_EQ(plan.bytes_between_devices, total);
    EXPECT_EQ(plan.copies.empty(), match[5] == "true");
  }
  EXPECT_EQ(rows, 121);
}

}  // namespace
}  // namespace artifex_devices
