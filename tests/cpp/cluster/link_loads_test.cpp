// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/link_loads.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

TEST(LinkLoads, LoadEveryLinkBetweenTwoChipsOfALine) {
  LinkLoads loads({3}, {false});
  loads.add(0, 2, 8);
  loads.add(2, 1, 3);
  EXPECT_EQ(loads.most_bytes(), 8);
  EXPECT_EQ(loads.total_bytes(), 19);
  EXPECT_EQ(loads.longest_path(), 2);
}

TEST(LinkLoads, UseTheShorterDirectionOfARingAndSplitTies) {
  LinkLoads loads({4}, {true});
  loads.add(0, 3, 8);
  EXPECT_EQ(loads.longest_path(), 1);
  EXPECT_EQ(loads.total_bytes(), 8);
  loads.add(0, 2, 8);  // 4 bytes over each of four links; 0->3 has 8 already
  EXPECT_EQ(loads.most_bytes(), 12);
  EXPECT_EQ(loads.total_bytes(), 24);
  EXPECT_EQ(loads.longest_path(), 2);
}

TEST(LinkLoads, TreatRingsOfTwoAsLines) {
  LinkLoads loads({2}, {true});
  loads.add(1, 0, 8);
  EXPECT_EQ(loads.most_bytes(), 8);
  EXPECT_EQ(loads.longest_path(), 1);
}

TEST(LinkLoads, RouteXBeforeY) {
  LinkLoads loads({2, 2}, {false, false});
  loads.add(0, 3, 5);  // over chip 1
  loads.add(0, 1, 7);
  loads.add(1, 3, 1);
  EXPECT_EQ(loads.most_bytes(), 12);
  EXPECT_EQ(loads.total_bytes(), 18);
}

TEST(LinkLoads, LoadARingByTheDistanceOfAShift) {
  for (int shift = 1; shift < 8; ++shift) {
    LinkLoads loads({8}, {true});
    for (int chip = 0; chip < 8; ++chip) loads.add(chip, (chip + shift) % 8, 1);
    EXPECT_EQ(loads.most_bytes(), shift == 4 ? 2 : std::min(shift, 8 - shift)) << shift;
  }
}

TEST(LinkLoads, RefuseInvalidTori) {
  EXPECT_THROW(LinkLoads({0}, {false}), InvalidArgument);
  EXPECT_THROW(LinkLoads({4}, {}), InvalidArgument);
  EXPECT_THROW(LinkLoads({4096, 4096, 2}, {false, false, false}), InvalidArgument);
  LinkLoads loads({2}, {false});
  EXPECT_THROW(loads.add(0, 2, 1), InvalidArgument);
}

TEST(LinkLoads, MatchAWalkOverTheLinks) {
  // Against a walk from chip to chip, for all pairs of tori with odd and even, joined and open axes.
  struct Made {
    std::vector<int64_t> dims;
    std::vector<bool> wraps;
  };
  const std::vector<Made> tori = {
      {{5, 4, 3}, {true, true, false}}, {{6, 1, 5}, {true, true, true}}, {{2, 7}, {true, false}}};
  for (const Made& torus : tori) {
    LinkLoads loads(torus.dims, torus.wraps);
    std::map<std::pair<int64_t, int64_t>, double> walked;  // by chips that the link joins
    double total = 0;
    for (int64_t from = 0; from < loads.chips(); ++from) {
      for (int64_t to = 0; to < loads.chips(); ++to) {
        const auto bytes = static_cast<double>(from * 7 % 5 + to % 3 + 1);
        const int64_t path = loads.add(from, to, bytes);
        total += bytes * static_cast<double>(path);
        int64_t at = from;
        int64_t stride = 1;
        for (size_t axis = 0; axis < torus.dims.size(); stride *= torus.dims[axis], ++axis) {
          const int64_t size = torus.dims[axis];
          const int64_t begin = at / stride % size;
          const int64_t end = to / stride % size;
          const bool ring = torus.wraps[axis] && size > 2;
          const int64_t ahead = (end - begin + size) % size;
          for (const bool forward : {true, false}) {
            const int64_t steps = forward ? ahead : (size - ahead) % size;
            const bool tie = ring && 2 * steps == size;
            if (ring ? 2 * steps > size : forward != (end > begin)) continue;
            for (int64_t i = 0, place = begin; i < steps; ++i) {
              const int64_t next = (place + (forward ? 1 : size - 1)) % size;
              walked[{at + (place - begin) * stride, at + (next - begin) * stride}] += tie ? bytes / 2 : bytes;
              place = next;
            }
          }
          at += (end - begin) * stride;
        }
      }
    }
    double most = 0;
    for (const auto& [link, bytes] : walked) most = std::max(most, bytes);
    EXPECT_EQ(loads.most_bytes(), most);
    EXPECT_EQ(loads.total_bytes(), total);
  }
}

}  // namespace
}  // namespace artifex_devices
