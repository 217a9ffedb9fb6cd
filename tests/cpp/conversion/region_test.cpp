// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace artifex_devices {
namespace {

using Elements = std::map<Dims, int64_t>;  // index in the target, and element of the source

void add_elements(const Region& region, size_t loop, Dims index, int64_t element, Elements* into) {
  if (loop == region.loops.size()) {
    EXPECT_TRUE(into->emplace(std::move(index), element).second) << "two regions write one element";
    return;
  }
  const RegionLoop& each = region.loops[loop];
  for (int64_t i = 0; i < each.size; ++i) {
    Dims next = index;
    next[each.axis] += i * each.step;
    add_elements(region, loop + 1, std::move(next), element + i * each.stride, into);
  }
}

Elements elements_of(const std::vector<Region>& regions) {
  Elements found;
  for (const Region& region : regions) add_elements(region, 0, region.origin, region.offset, &found);
  return found;
}

TEST(Region, RotaryEmbeddingsAreOneRegion) {
  Region region = whole_region(0, {4 * 8}, DType::kFloat32);  // 4 heads of 2 halves of 4
  std::vector<Region> divided;
  append_unflattened(region, 0, 8, &divided);
  ASSERT_EQ(divided.size(), 1);
  region = divided[0];
  divided.clear();
  append_unflattened(region, 1, 4, &divided);
  ASSERT_EQ(divided.size(), 1);
  region = divided[0];
  transpose(&region, {0, 2, 1});
  flatten(&region, 1, 2);
  flatten(&region, 0, 8);
  EXPECT_EQ(region, (Region{{0}, {{0, 8, 4, 8}, {0, 2, 4, 1}, {0, 1, 2, 4}}, 0}));
}

TEST(Region, UnevenBlocksAreAFewRegions) {
  const Region region = whole_region(0, {7, 100}, DType::kFloat32);
  std::vector<Region> inside;
  append_restricted(region, 1, 13, 95, &inside);
  std::vector<Region> divided;
  append_unflattened(inside.at(0), 1, 10, &divided);
  EXPECT_EQ(divided, (std::vector<Region>{
                         {{0, 1, 3}, {{0, 1, 7, 100}, {2, 1, 7, 1}}, 0, 13},
                         {{0, 2, 0}, {{0, 1, 7, 100}, {1, 1, 7, 10}, {2, 1, 10, 1}}, 0, 20},
                         {{0, 9, 0}, {{0, 1, 7, 100}, {2, 1, 5, 1}}, 0, 90},
                     }));
}

TEST(Region, RandomOperationsMoveElementsAsIndicesSay) {
  std::mt19937 random(7);
  const auto drawn = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int round = 0; round < 100; ++round) {
    Dims shape = {12, 30};
    std::vector<Region> regions = {whole_region(0, shape, DType::kFloat32)};
    for (int step = 0; step < 8; ++step) {
      Elements expected;
      const Elements before = elements_of(regions);
      const int64_t axis = drawn(shape.size());
      std::vector<Region> made;
      const int64_t kind = drawn(4);
      if (kind == 0) {
        std::vector<int64_t> divisors;
        for (int64_t d = 1; d <= shape[axis]; ++d) {
          if (shape[axis] % d == 0) divisors.push_back(d);
        }
        const int64_t inner = divisors[static_cast<size_t>(drawn(static_cast<int64_t>(divisors.size())))];
        for (const auto& [at, element] : before) {
          Dims index = at;
          insert_value(&index, axis + 1, index[axis] % inner);
          index[axis] /= inner;
          expected[index] = element;
        }
        for (const Region& region : regions) append_unflattened(region, axis, inner, &made);
        shape[axis] /= inner;
        insert_value(&shape, axis + 1, inner);
      } else if (kind == 1 && axis + 1 < shape.size()) {
        for (const auto& [at, element] : before) {
          Dims index = at;
          index[axis] = index[axis] * shape[axis + 1] + index[axis + 1];
          erase_value(&index, axis + 1);
          expected[index] = element;
        }
        made = regions;
        for (Region& region : made) flatten(&region, axis, shape[axis + 1]);
        shape[axis] *= shape[axis + 1];
        erase_value(&shape, axis + 1);
      } else if (kind == 2) {
        Dims axes(shape.size(), 0);
        for (int64_t d = 0; d < axes.size(); ++d) axes[d] = d;
        std::ranges::shuffle(axes, random);
        const auto turned = [&](const Dims& values) {
          Dims other = values;
          for (int64_t d = 0; d < axes.size(); ++d) other[d] = values[axes[d]];
          return other;
        };
        for (const auto& [index, element] : before) expected[turned(index)] = element;
        made = regions;
        for (Region& region : made) transpose(&region, axes);
        shape = turned(shape);
      } else {
        const int64_t begin = drawn(shape[axis]);
        const int64_t end = begin + 1 + drawn(shape[axis] - begin);
        for (const auto& [index, element] : before) {
          if (begin <= index[axis] && index[axis] < end) expected[index] = element;
        }
        for (const Region& region : regions) append_restricted(region, axis, begin, end, &made);
      }
      EXPECT_EQ(elements_of(made), expected) << "round " << round << ", operation " << kind;
      if (made.empty()) break;
      regions = std::move(made);
    }
  }
}

}  // namespace
}  // namespace artifex_devices
