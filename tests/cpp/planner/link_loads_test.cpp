// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/link_loads.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/planner/collective_cost.h"

namespace artifex_devices {
namespace {

TEST(LinkLoads, LineTakesEveryLinkBetween) {
  LinkLoads loads({3}, {false});
  loads.add(0, 2, 8);
  loads.add(2, 1, 3);
  EXPECT_EQ(loads.most_bytes(), 8);
  EXPECT_EQ(loads.total_bytes(), 19);
  EXPECT_EQ(loads.longest_path(), 2);
}

TEST(LinkLoads, RingGoesTheShorterWayAndHalvesTies) {
  LinkLoads loads({4}, {true});
  loads.add(0, 3, 8);
  EXPECT_EQ(loads.longest_path(), 1);
  EXPECT_EQ(loads.total_bytes(), 8);
  loads.add(0, 2, 8);  // 4 bytes over each of four links; 0->3 has 8 already
  EXPECT_EQ(loads.most_bytes(), 12);
  EXPECT_EQ(loads.total_bytes(), 24);
  EXPECT_EQ(loads.longest_path(), 2);
}

TEST(LinkLoads, RingsOfTwoAreLines) {
  LinkLoads loads({2}, {true});
  loads.add(1, 0, 8);
  EXPECT_EQ(loads.most_bytes(), 8);
  EXPECT_EQ(loads.longest_path(), 1);
}

TEST(LinkLoads, TakesXBeforeY) {
  LinkLoads loads({2, 2}, {false, false});
  loads.add(0, 3, 5);  // over chip 1
  loads.add(0, 1, 7);
  loads.add(1, 3, 1);
  EXPECT_EQ(loads.most_bytes(), 12);
  EXPECT_EQ(loads.total_bytes(), 18);
}

TEST(LinkLoads, ShiftsLoadARingByTheirDistance) {
  for (int shift = 1; shift < 8; ++shift) {
    LinkLoads loads({8}, {true});
    for (int chip = 0; chip < 8; ++chip) loads.add(chip, (chip + shift) % 8, 1);
    EXPECT_EQ(loads.most_bytes(), shift == 4 ? 2 : std::min(shift, 8 - shift)) << shift;
  }
}

TEST(LinkLoads, RefusesWhatIsNoTorus) {
  EXPECT_THROW(LinkLoads({0}, {false}), InvalidArgument);
  EXPECT_THROW(LinkLoads({4}, {}), InvalidArgument);
  EXPECT_THROW(LinkLoads({4096, 4096, 2}, {false, false, false}), InvalidArgument);
  LinkLoads loads({2}, {false});
  EXPECT_THROW(loads.add(0, 2, 1), InvalidArgument);
}

/// The formula's all-to-all against every message put on its links.
TEST(LinkLoads, AllToAllIsWhatTheFormulaSays) {
  struct Torus {
    std::vector<int> dims;
    std::vector<bool> wraps;
  };
  const std::vector<Torus> tori = {{{4}, {false}},
                                   {{4}, {true}},
                                   {{5}, {true}},
                                   {{5}, {false}},
                                   {{8}, {true}},
                                   {{16}, {true}},
                                   {{2, 2}, {false, false}},
                                   {{4, 4}, {true, true}},
                                   {{4, 4}, {false, false}},
                                   {{3, 4}, {true, false}},
                                   {{4, 8}, {false, true}},
                                   {{16, 8}, {true, false}},
                                   {{2, 2, 4}, {false, false, true}},
                                   {{4, 4, 4}, {true, true, true}},
                                   {{4, 4, 8}, {true, true, true}}};
  for (const Torus& torus : tori) {
    LinkLoads loads(torus.dims, torus.wraps);
    const auto n = static_cast<double>(loads.chips());
    for (int64_t from = 0; from < loads.chips(); ++from) {
      for (int64_t to = 0; to < loads.chips(); ++to) loads.add(from, to, 1);
    }
    TorusGroup group{.axes = {}, .link = 1, .latency = {0, 1}};
    for (size_t axis = 0; axis < torus.dims.size(); ++axis) {
      group.axes.push_back({torus.dims[axis], torus.wraps[axis], 1});
    }
    const CollectiveCost cost = collective_costs(Collective::kAllToAll, n * n, LocalGroup(group)).front();
    EXPECT_DOUBLE_EQ(cost.transfer, loads.most_bytes()) << "of " << n;
    EXPECT_EQ(cost.latency, static_cast<double>(loads.longest_path())) << "of " << n;
  }
}

}  // namespace
}  // namespace artifex_devices
