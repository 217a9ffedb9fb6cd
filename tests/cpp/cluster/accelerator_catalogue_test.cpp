// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/accelerator_catalogue.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "artifex_devices/topology/accelerators.h"

namespace artifex_devices {
namespace {

std::string name_of(const Accelerator* row) { return row ? std::string(row->name) : "none"; }

TEST(AcceleratorCatalogue, LeavesUnpublishedNumbersEmpty) {
  for (const Accelerator& row : accelerator_catalogue()) {
    SCOPED_TRACE(row.name);
    EXPECT_GT(row.memory_bytes, 0);
    EXPECT_GT(row.memory_bandwidth, 0);
    EXPECT_TRUE(row.peak(MatmulFormat::kBFloat16) || row.peak(MatmulFormat::kFloat16));
    for (const auto& peak : row.peak_flops) EXPECT_GT(peak.value_or(1), 0);
    for (const auto& rate : {row.links.one_way, row.links.nominal_one_way, row.pcie_one_way, row.network_per_chip}) {
      EXPECT_GT(rate.value_or(1), 0);
    }
    EXPECT_TRUE(row.platform == "tpu" || row.platform == "gpu");
  }
}

TEST(AcceleratorCatalogue, FindsAChipByNameKindAndPciId) {
  std::set<std::string> seen;
  for (const Accelerator& row : accelerator_catalogue()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(seen.insert(std::string(row.name)).second);
    EXPECT_EQ(find_accelerator_by_name(row.name), &row);
    for (const std::string_view kind : row.device_kinds) {
      if (kind.empty()) continue;
      EXPECT_EQ(find_accelerator_by_kind(kind), &row) << kind;
    }
    for (const std::string_view id : row.pci_ids) {
      if (id.empty()) continue;
      ASSERT_EQ(id.size(), 9U);
      EXPECT_TRUE(seen.insert(std::string(id)).second);
      EXPECT_EQ(find_accelerator_by_pci(id), &row) << id;
    }
  }
}

TEST(AcceleratorCatalogue, HasASourceForEveryNumber) {
  for (const Accelerator& row : accelerator_catalogue()) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.sources[0].empty());
    EXPECT_EQ(row.links.kind.empty(), row.link_sources[0].empty());
    EXPECT_EQ(row.pci_ids[0].empty(), row.pci_source.empty());
    for (const std::string_view id : row.sources) {
      EXPECT_TRUE(id.empty() || find_catalogue_source(id)) << id;
    }
    for (const std::string_view id : row.link_sources) {
      EXPECT_TRUE(id.empty() || find_catalogue_source(id)) << id;
    }
    EXPECT_TRUE(row.pci_source.empty() || find_catalogue_source(row.pci_source));
  }
  EXPECT_EQ(find_catalogue_source("S99"), nullptr);
}

TEST(AcceleratorCatalogue, ComparesWholeWordsOfAKind) {
  EXPECT_EQ(name_of(find_accelerator_by_kind("TPU v5")), "TPU v5p");
  EXPECT_EQ(name_of(find_accelerator_by_kind("tpu V5 LITE")), "TPU v5e");
  EXPECT_EQ(name_of(find_accelerator_by_kind("TPU v4 lite")), "none");
  EXPECT_EQ(name_of(find_accelerator_by_kind("NVIDIA H100 80GB HBM3")), "NVIDIA H100 SXM");
  EXPECT_EQ(name_of(find_accelerator_by_kind("NVIDIA H100 80GB HBM3 MIG 1g.10gb")), "none");
  EXPECT_EQ(name_of(find_accelerator_by_kind("NVIDIA H100 PCIe")), "none");
  EXPECT_EQ(name_of(find_accelerator_by_kind("NVIDIA GB200")), "NVIDIA GB200 NVL72 (per GPU)");
  EXPECT_EQ(name_of(find_accelerator_by_kind("NVIDIA RTX A1000")), "none");
  EXPECT_EQ(name_of(find_accelerator_by_kind("A100-SXM4-80GB")), "NVIDIA A100 SXM 80GB");
  EXPECT_EQ(name_of(find_accelerator_by_kind("gfx942:sramecc+:xnack-")), "AMD MI300X");
  EXPECT_EQ(name_of(find_accelerator_by_kind("gfx90a:sramecc+:xnack-")), "none");
  for (const char* nothing : {"", " - ", "NVIDIA", ":"}) {
    EXPECT_EQ(name_of(find_accelerator_by_kind(nothing)), "none") << nothing;
  }
}

TEST(AcceleratorCatalogue, FindsChipsByPciIdAndType) {
  EXPECT_EQ(name_of(find_accelerator_by_pci("10DE:2330")), "NVIDIA H100 SXM");
  EXPECT_EQ(name_of(find_accelerator_by_pci("1ae0:0042")), "none");  // a network card of Google's
  EXPECT_EQ(name_of(find_accelerator_by_pci("")), "none");
  EXPECT_EQ(name_of(find_accelerator_of_type("a100")), "NVIDIA A100 SXM 80GB");
  EXPECT_EQ(name_of(find_accelerator_of_type("v100")), "NVIDIA V100 SXM2 16GB");
  EXPECT_EQ(name_of(find_accelerator_of_type("cpu")), "none");
  EXPECT_EQ(name_of(find_accelerator_of_type("")), "none");
}

TEST(AcceleratorCatalogue, HasTheKnownNumbers) {
  const Accelerator* h100 = find_accelerator_by_name("nvidia h100 sxm");
  ASSERT_NE(h100, nullptr);
  EXPECT_EQ(h100->peak(MatmulFormat::kBFloat16), 9.89e14);
  EXPECT_EQ(h100->peak(MatmulFormat::kInt4), std::nullopt);
  EXPECT_EQ(h100->memory_bandwidth, 3.35e12);
  EXPECT_EQ(h100->links.links * h100->links.one_way.value(), 4.5e11);
  const Accelerator* v100 = find_accelerator_of_type("v100");
  ASSERT_NE(v100, nullptr);
  EXPECT_EQ(v100->peak(MatmulFormat::kBFloat16), std::nullopt);  // has none
}

TEST(AcceleratorCatalogue, ConvertsFormatsInBothDirections) {
  for (int i = 0; i < kMatmulFormatCount; ++i) {
    const auto format = static_cast<MatmulFormat>(i);
    EXPECT_EQ(matmul_format_from_name(to_string(format)), format);
  }
  EXPECT_EQ(matmul_format_from_name("bf16"), std::nullopt);
  EXPECT_EQ(to_string(static_cast<MatmulFormat>(99)), "unknown");
}

TEST(AcceleratorCatalogue, HasTheNamesOfPciIdsThatTopologyFinds) {
  int compared = 0;
  for (const Accelerator& row : accelerator_catalogue()) {
    for (const std::string_view id : row.pci_ids) {
      if (id.empty()) continue;
      const auto number = [&](size_t at) {
        return static_cast<uint16_t>(std::stoul(std::string(id.substr(at, 4)), nullptr, 16));
      };
      const std::string_view name = pci_accelerator_name(number(0), number(5));
      ASSERT_NE(name, "") << id;
      EXPECT_EQ(find_accelerator_by_kind(name), &row) << id << " " << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 17);
}

}  // namespace
}  // namespace artifex_devices
