// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/layout_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace artifex_devices {
namespace {

HostView view_of(std::vector<uint16_t>& values, const Dims& shape) {
  HostView view;
  view.data = values.data();
  view.dtype = DType::kUInt16;
  view.shape = shape;
  view.byte_strides = row_major_strides(shape, 2);
  view.writable = true;
  return view;
}

std::vector<uint16_t> counting(int64_t count) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), uint16_t{1});
  return values;
}

std::vector<uint16_t> packed(const Layout& layout, const Dims& shape) {
  std::vector<uint16_t> values = counting(checked_product(shape, "test"));
  std::vector<uint16_t> memory(static_cast<size_t>(layout.byte_size(shape, DType::kUInt16, "test") / 2), 0xFFFF);
  copy_to_layout(view_of(values, shape), layout, reinterpret_cast<std::byte*>(memory.data()));
  return memory;
}

TEST(LayoutCopy, MatchesTheExampleInTheHeader) {
  EXPECT_EQ(packed(Layout({1, 0}, {{2, 2}}, 0), {2, 3}), (std::vector<uint16_t>{1, 2, 4, 5, 3, 0, 6, 0}));
}

TEST(LayoutCopy, TransposesForColumnMajor) {
  EXPECT_EQ(packed(Layout({0, 1}, {}, 0), {2, 3}), (std::vector<uint16_t>{1, 4, 2, 5, 3, 6}));
}

TEST(LayoutCopy, MergesNonadjacentDimensionsAtAStar) {
  // (3, 2) turned: 1 3 5 / 2 4 6, merged to six, cut by four.
  EXPECT_EQ(packed(Layout({0, 1}, {{Layout::kCombine, 4}}, 0), {3, 2}),
            (std::vector<uint16_t>{1, 3, 5, 2, 4, 6, 0, 0}));
}

TEST(LayoutCopy, InterleavesRowsWithSecondTiles) {
  EXPECT_EQ(packed(Layout({1, 0}, {{2, 4}, {2, 1}}, 0), {2, 4}), (std::vector<uint16_t>{1, 5, 2, 6, 3, 7, 4, 8}));
}

TEST(LayoutCopy, RoundTripsEveryOrderAndTile) {
  const Dims shape{5, 4, 7};
  for (const Dims& order : {Dims{2, 1, 0}, Dims{0, 1, 2}, Dims{1, 2, 0}}) {
    for (const std::vector<Dims>& tiles :
         {std::vector<Dims>{}, {{3}}, {{2, 3}}, {{2, 3}, {2, 2}}, {{Layout::kCombine, 4}}, {{2, 2, 2, 2, 2}, {3, 1}}}) {
      const Layout layout(order, tiles, 0);
      const std::vector<uint16_t> memory = packed(layout, shape);
      std::vector<uint16_t> back(5 * 4 * 7, 0);
      copy_from_layout(reinterpret_cast<const std::byte*>(memory.data()), layout, view_of(back, shape));
      EXPECT_EQ(back, counting(5 * 4 * 7)) << layout.to_string();
    }
  }
}

/// Tile after tile, element by element.
std::vector<uint16_t> tiled_by_a_loop(const Dims& shape, const std::vector<Dims>& tiles) {
  std::vector<uint16_t> values = counting(checked_product(shape, "test"));
  Dims now = shape;
  for (const Dims& tile : tiles) {
    const TileStep step = tile_step(now, tile, "test");
    const int64_t whole = step.combined.size() - step.tile.size();
    const Dims strides = row_major_strides(step.result, 1);
    std::vector<uint16_t> next(static_cast<size_t>(checked_product(step.result, "test")), 0);
    for (size_t n = 0; n < values.size(); ++n) {
      int64_t at = 0;
      auto rest = static_cast<int64_t>(n);
      for (int64_t d = step.combined.size() - 1; d >= 0; rest /= step.combined[d--]) {
        const int64_t index = rest % step.combined[d];
        if (d < whole) {
          at += index * strides[d];
        } else {
          const int64_t size = step.tile[d - whole];
          at += index / size * strides[d] + index % size * strides[d + step.tile.size()];
        }
      }
      next[static_cast<size_t>(at)] = values[n];
    }
    values = std::move(next);
    now = step.result;
  }
  return values;
}

TEST(LayoutCopy, CopiesTilesOfTilesAsALoop) {
  for (const Dims& shape : {Dims{5, 4, 7}, Dims{16, 8, 12}, Dims{3, 17, 30}, Dims{1, 1, 1}, Dims{2, 0, 3}}) {
    for (const std::vector<Dims>& tiles : {std::vector<Dims>{{4, 6}, {2, 1}},
                                           {{4, 6}, {2, 2}},
                                           {{4, 6}, {3, 4}},
                                           {{4, 6}, {2, 3}, {2, 1}},
                                           {{4, 6}, {2, 2, 2}},
                                           {{2, 3}, {2, 2, 2, 2}},
                                           {{2, 3, 4}, {2, 1}},
                                           {{8}, {4}, {2}},
                                           {{8, 128}, {2, 1}}}) {
      EXPECT_EQ(packed(Layout({2, 1, 0}, tiles, 0), shape), tiled_by_a_loop(shape, tiles))
          << Layout({2, 1, 0}, tiles, 0).to_string() << " of " << to_string(shape);
      const Layout layout({2, 1, 0}, tiles, 0);
      const std::vector<uint16_t> memory = tiled_by_a_loop(shape, tiles);
      std::vector<uint16_t> back(static_cast<size_t>(checked_product(shape, "test")), 0);
      copy_from_layout(reinterpret_cast<const std::byte*>(memory.data()), layout, view_of(back, shape));
      EXPECT_EQ(back, counting(checked_product(shape, "test"))) << layout.to_string();
    }
  }
}

TEST(LayoutCopy, PacksTwoHalfBytesLowFirst) {
  std::vector<uint8_t> values{1, 8, 7};
  HostView view;
  view.data = values.data();
  view.dtype = DType::kInt4;
  view.shape = {3};
  view.byte_strides = {1};
  const Layout layout({0}, {}, 4);
  ASSERT_EQ(layout.byte_size({3}, DType::kInt4, "test"), 2);
  std::vector<uint8_t> memory(2, 0xFF);
  copy_to_layout(view, layout, reinterpret_cast<std::byte*>(memory.data()));
  EXPECT_EQ(memory, (std::vector<uint8_t>{0x81, 0x07}));
  std::vector<uint8_t> back(3, 0xFF);
  view.data = back.data();
  copy_from_layout(reinterpret_cast<const std::byte*>(memory.data()), layout, view);
  EXPECT_EQ(back, values);
}

}  // namespace
}  // namespace artifex_devices
