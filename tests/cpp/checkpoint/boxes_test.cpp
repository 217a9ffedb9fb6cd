// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/boxes.h"

#include <gtest/gtest.h>

#include "artifex_devices/checkpoint/crc32c.h"

namespace artifex_devices {
namespace {

TEST(PieceGrid, PiecesAreChunksOfTheFirstDimensionThatFits) {
  const PieceGrid grid({5, 2}, 4, 16);
  ASSERT_EQ(grid.count(), 3);
  EXPECT_EQ(grid.piece(0), (IndexDomain{{0, 0}, {2, 2}}));
  EXPECT_EQ(grid.piece(2), (IndexDomain{{4, 0}, {1, 2}}));
}

TEST(PieceGrid, PiecesCoverEachElementOnceInTheOrderOfMemory) {
  for (const Dims& shape : {Dims{}, Dims{7}, Dims{3, 5}, Dims{2, 3, 4}, Dims{4, 1, 9}, Dims{1, 1, 1}}) {
    for (const int64_t piece_bytes : {2, 4, 8, 24, 1000}) {
      const PieceGrid grid(shape, 2, piece_bytes);
      int64_t next = 0;
      for (int64_t i = 0; i < grid.count(); ++i) {
        const IndexDomain piece = grid.piece(i);
        EXPECT_EQ(row_major_offset(shape, piece.origin), next);
        EXPECT_LE(piece.volume() * 2, piece_bytes);
        next += piece.volume();
      }
      EXPECT_EQ(next, checked_product(shape, "test"));
    }
  }
}

TEST(PieceGrid, AnEmptyBoxHasNoPiece) { EXPECT_EQ(PieceGrid({4, 0}, 4).count(), 0); }

TEST(JoinBoxes, NeighborsBecomeOneBox) {
  EXPECT_EQ(join_boxes({{{0, 0}, {2, 2}}, {{2, 2}, {2, 2}}, {{0, 2}, {2, 2}}, {{2, 0}, {2, 2}}}),
            (std::vector<IndexDomain>{{{0, 0}, {4, 4}}}));
  EXPECT_EQ(join_boxes({{{0}, {2}}, {{4}, {2}}, {{0}, {2}}}), (std::vector<IndexDomain>{{{0}, {2}}, {{4}, {2}}}));
  EXPECT_EQ(join_boxes({{{}, {}}, {{}, {}}}).size(), 1U);
}

TEST(Crc32c, HasTheValuesOfTheStandard) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283U);
  const std::string zeros(32, '\0');
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8A9136AAU);
  EXPECT_EQ(crc32c(nullptr, 0), 0U);
}

TEST(Crc32c, AllLoopsAgreeAndContinue) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37 % 251);
  for (size_t size = 0; size < text.size(); size += 13) {
    EXPECT_EQ(crc32c(text.data(), size), crc32c_by_table(text.data(), size));
    EXPECT_EQ(crc32c(text.data() + size, text.size() - size, crc32c(text.data(), size)),
              crc32c(text.data(), text.size()));
  }
}

TEST(PartOfBox, PartsCoverTheBoxOnce) {
  const IndexDomain box{{2, 5}, {3, 7}};
  int64_t volume = 0;
  for (int64_t i = 0; i < 5; ++i) {
    const auto part = part_of_box(box, i, 5);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->shape[0], 3);  // the second dimension is long enough
    EXPECT_EQ(part->origin[1], 5 + volume / 3);
    volume += part->volume();
  }
  EXPECT_EQ(volume, 21);
  EXPECT_TRUE(part_of_box({{0}, {2}}, 1, 3));
  EXPECT_FALSE(part_of_box({{0}, {2}}, 2, 3));
}

TEST(PartOfBox, AScalarIsInTheFirstPartOnly) {
  EXPECT_TRUE(part_of_box({{}, {}}, 0, 3));
  EXPECT_FALSE(part_of_box({{}, {}}, 1, 3));
  EXPECT_FALSE(part_of_box({{}, {}}, 2, 3));
}

}  // namespace
}  // namespace artifex_devices
