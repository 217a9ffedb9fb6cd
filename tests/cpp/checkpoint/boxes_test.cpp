// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/boxes.h"

#include <gtest/gtest.h>

#include "artifex_devices/checkpoint/crc32c.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/sharding/mesh.h"
#include "artifex_devices/sharding/named_sharding.h"

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
  for (int i = 0; i < 80'000; ++i) text += static_cast<char>(i * 37 % 251);  // three blocks of 8 KiB, and more
  for (size_t size = 0; size < text.size(); size += 1301) {
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

/// The boxes that each of three processes with two devices each writes of an array of `shape`.
std::vector<std::vector<IndexDomain>> owned(const SpecEntry& entry, const Dims& shape) {
  const auto machine = Machine::from_synthetic("numa:1 core:2 pu:1");
  const ProcessInfo process = Client::describe(*machine, 2);
  ClientOptions options;
  options.processes = {process, process, process};
  options.num_devices = 2;
  const ClientRef client = Client::make(machine, options);
  std::vector<Device*> devices;
  for (const DeviceId id : client->device_ids()) devices.push_back(client->device(id));
  const MeshRef mesh = make_mesh({3, 2}, {AxisName("p"), AxisName("d")}, {}, devices, "make_mesh");
  const ShardingRef sharding = NamedSharding::make(mesh, PartitionSpec({entry}));
  std::vector<std::vector<IndexDomain>> boxes;
  for (int64_t each = 0; each < 3; ++each) boxes.push_back(owned_boxes(*sharding, shape, ProcessIndex(each)));
  return boxes;
}

using Boxes = std::vector<std::vector<IndexDomain>>;

TEST(OwnedBoxes, AProcessWritesTheJoinedTilesThatNoOtherHolds) {
  EXPECT_EQ(owned(SpecEntry({AxisName("p"), AxisName("d")}), {12, 5}),
            (Boxes{{{{0, 0}, {4, 5}}}, {{{4, 0}, {4, 5}}}, {{{8, 0}, {4, 5}}}}));
}

TEST(OwnedBoxes, ProcessesThatHoldTheSameTileShareIt) {
  EXPECT_EQ(owned(SpecEntry(), {9, 5}), (Boxes{{{{0, 0}, {3, 5}}}, {{{3, 0}, {3, 5}}}, {{{6, 0}, {3, 5}}}}));
  // Each process holds both halves; of each it writes a third.
  EXPECT_EQ(owned(SpecEntry({AxisName("d")}), {6, 5}), (Boxes{{{{0, 0}, {1, 5}}, {{3, 0}, {1, 5}}},
                                                              {{{1, 0}, {1, 5}}, {{4, 0}, {1, 5}}},
                                                              {{{2, 0}, {1, 5}}, {{5, 0}, {1, 5}}}}));
}

TEST(OwnedBoxes, AnArrayWithoutElementsBelongsToNoProcess) {
  EXPECT_EQ(owned(SpecEntry(), {0, 5}), (Boxes{{}, {}, {}}));
}

}  // namespace
}  // namespace artifex_devices
