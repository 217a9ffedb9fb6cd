// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/tile_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/conversion/region.h"

namespace artifex_devices {
namespace {

constexpr int64_t kSlabElements = int64_t{32} << 20;  // 64 MiB of bfloat16

// Layers of a shape, transposed and stacked at `position`.
PlannedArray stacked_transposes(int64_t layers, int64_t rows, int64_t columns, int64_t position) {
  PlannedArray array{{"w", {columns, rows}, DType::kBFloat16}, {}};
  for (int64_t i = 0; i < layers; ++i) {
    Region region = whole_region(i, {rows, columns}, DType::kBFloat16);
    transpose(&region, {1, 0});
    insert_axis(&region, position, i);
    array.regions.push_back(std::move(region));
  }
  insert_value(&array.type.shape, position, layers);
  return array;
}

IndexDomain whole(const PlannedArray& array) { return {Dims(array.type.shape.size(), 0), array.type.shape}; }

TEST(TileShape, TilesOfLayersStackedInsideHaveWholeRowsOfOneLayer) {
  const PlannedArray array = stacked_transposes(32, 14336, 4096, 1);
  const auto tile = tile_shape(array, whole(array), {73, 32, 14336});
  ASSERT_TRUE(tile);
  EXPECT_EQ(*tile, (Dims{4096, 1, 7168}));  // 7,168 rows of one source
}

TEST(TileShape, SlabsOfLayersStackedOutsideAreAsGood) {
  const PlannedArray array = stacked_transposes(32, 2048, 2048, 0);
  EXPECT_EQ(tile_shape(array, whole(array), {8, 2048, 2048}), std::nullopt);
}

TEST(TileShape, SlabsOfACopyAreAsGood) {
  const PlannedArray array{{"w", {1 << 15, 1 << 15}, DType::kBFloat16},
                           {whole_region(0, {1 << 15, 1 << 15}, DType::kBFloat16)}};
  EXPECT_EQ(tile_shape(array, whole(array), {1024, 1 << 15}), std::nullopt);
}

TEST(TileShape, ALargeTransposeIsReadInTilesThatAreLongOnBothSides) {
  const PlannedArray array = stacked_transposes(1, 128256, 8192, 0);
  const auto tile = tile_shape(array, whole(array), {1, 261, 128256});
  ASSERT_TRUE(tile);
  EXPECT_EQ((*tile)[1], 8192);  // whole rows of the source
  EXPECT_GE((*tile)[2], 2004);
}

TEST(TileShape, OfAPartOfATransposeHasThePartsRows) {
  const PlannedArray array = stacked_transposes(2, 14336, 4096, 1);
  const auto tile = tile_shape(array, {{0, 0, 7168}, {4096, 2, 7168}}, {2340, 2, 7168});
  EXPECT_EQ(tile, std::nullopt);  // two slabs
}

TEST(TileShape, ConstantsNeedNoTiles) {
  Region zeros = whole_region(Region::kConstant, {1 << 15, 1 << 15}, DType::kBFloat16);
  transpose(&zeros, {1, 0});
  const PlannedArray array{{"w", {1 << 15, 1 << 15}, DType::kBFloat16}, {zeros}};
  EXPECT_EQ(tile_shape(array, whole(array), {1024, 1 << 15}), std::nullopt);
}

TEST(TileShape, NoTileIsLargerThanASlab) {
  for (const int64_t layers : {1, 3, 80}) {
    for (const int64_t position : {0, 1, 2}) {
      const PlannedArray array = stacked_transposes(layers, 28672, 8192, position);
      Dims slab(3, 1);
      int64_t inner = 1;
      for (int64_t d = 2; d >= 0; --d) {
        slab[d] = std::min(array.type.shape[d], std::max<int64_t>(1, kSlabElements / inner));
        inner *= slab[d];
      }
      const auto tile = tile_shape(array, whole(array), slab);
      if (tile) {
        EXPECT_LE((IndexDomain{{}, *tile}.volume()), (IndexDomain{{}, slab}.volume()));
      }
    }
  }
}

}  // namespace
}  // namespace artifex_devices
