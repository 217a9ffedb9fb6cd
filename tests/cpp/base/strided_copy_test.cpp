// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/isa.h"
#include "byte_array.h"

namespace artifex_devices {
namespace {

using test::ByteArray;

#if defined(__SANITIZE_THREAD__)
constexpr int kThoroughness = 1;  // the element loops are a hundred times slower there
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kThoroughness = 5;
#else
constexpr int kThoroughness = 15;
#endif

constexpr int64_t kGuard = 96;  // bytes around the destination that no copy may touch

int64_t volume(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

/// Byte offsets of the lowest and one past the highest element.
struct Extent {
  int64_t low = 0;
  int64_t high = 0;
};

Extent extent(const Dims& shape, const Dims& strides, int64_t itemsize) {
  Extent e;
  for (int64_t k = 0; k < shape.size(); ++k) {
    (strides[k] < 0 ? e.low : e.high) += (shape[k] - 1) * strides[k];
  }
  e.high += itemsize;
  return e;
}

/// One copy with its memories: the source has random bytes, the destination a known filling.
struct Case {
  Dims shape;
  Dims d_strides;
  Dims s_strides;
  int64_t itemsize = 1;
  int64_t d_shift = 0;  // of the destination from an aligned address
  int64_t transfer_bytes = 0;

  std::string text() const {
    return "shape " + to_string(shape) + " destination " + to_string(d_strides) + " source " + to_string(s_strides) +
           " itemsize " + std::to_string(itemsize) + " shift " + std::to_string(d_shift);
  }
};

class Memories {
 public:
  explicit Memories(const Case& c) : case_(c) {
    const Extent s = extent(c.shape, c.s_strides, c.itemsize);
    const Extent d = extent(c.shape, c.d_strides, c.itemsize);
    std::mt19937_64 random(7);
    source_ = test::random_bytes(random, s.high - s.low);
    from_ = source_.data() - s.low;
    destination_.assign(static_cast<size_t>(d.high - d.low + 2 * kGuard + 64 + c.d_shift), std::byte{0xA5});
    const auto unaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(destination_.data() + kGuard) % 64);
    origin_ = kGuard + (64 - unaligned) % 64 + c.d_shift - d.low;
    expected_ = destination_;
    naive(expected_.data() + origin_, from_, 0);
  }

  StridedCopy copy() {
    return {destination_.data() + origin_, case_.d_strides, from_, case_.s_strides, case_.shape, case_.itemsize,
            case_.transfer_bytes};
  }

  void clear() { std::fill(destination_.begin(), destination_.end(), std::byte{0xA5}); }
  bool right() const { return destination_ == expected_; }

 private:
  void naive(std::byte* d, const std::byte* s, int64_t k) const {
    if (k == case_.shape.size()) {
      std::memcpy(d, s, static_cast<size_t>(case_.itemsize));
      return;
    }
    for (int64_t i = 0; i < case_.shape[k]; ++i) naive(d + i * case_.d_strides[k], s + i * case_.s_strides[k], k + 1);
  }

  Case case_;
  ByteArray source_;
  ByteArray destination_;
  ByteArray expected_;
  const std::byte* from_ = nullptr;
  int64_t origin_ = 0;
};

/// Copies in one piece, in every number of pieces up to 9, and in the largest number of pieces.
void expect_right(const Case& c, int64_t piece_bytes = 64) {
  Memories memories(c);
  const StridedCopy copy = memories.copy();
  ASSERT_EQ(copy.bytes(), volume(c.shape) * c.itemsize) << c.text();
  copy.run();
  ASSERT_TRUE(memories.right()) << c.text();
  const int64_t most = copy.pieces(piece_bytes);
  ASSERT_GE(most, 1) << c.text();
  for (int64_t count = 1; count <= most; count = count < 9 || count == most ? count + 1 : most) {
    memories.clear();
    for (int64_t i = 0; i < count; ++i) copy.run(count - 1 - i, count);
    ASSERT_TRUE(memories.right()) << c.text() << " pieces " << count;
  }
}

Dims dense(const Dims& shape, int64_t itemsize) { return row_major_strides(shape, itemsize); }

/// Row-major strides of a bigger array of which this is a box.
Dims padded(const Dims& shape, int64_t itemsize, std::mt19937_64& random) {
  Dims bigger = shape;
  for (int64_t& size : bigger) size += static_cast<int64_t>(random() % 3);
  return dense(bigger, itemsize);
}

Dims permuted(const Dims& strides_of_permuted, const std::vector<int64_t>& order) {
  Dims out(strides_of_permuted.size(), 0);
  for (int64_t k = 0; k < out.size(); ++k) out[order[static_cast<size_t>(k)]] = strides_of_permuted[k];
  return out;
}

Case random_case(std::mt19937_64& random, int64_t most_elements) {
  Case c;
  const int64_t itemsizes[] = {1, 2, 4, 8, 16, 3, 12};
  c.itemsize = itemsizes[random() % 7];
  const auto rank = static_cast<int64_t>(random() % 6);
  int64_t left = most_elements;
  for (int64_t k = 0; k < rank; ++k) {
    const auto size = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(std::min<int64_t>(left, 70)));
    c.shape.push_back(size);
    left /= size;
  }
  const auto strides = [&](bool broadcast) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    if (random() % 2) std::shuffle(order.begin(), order.end(), random);
    Dims laid_out;
    for (const int64_t k : order) laid_out.push_back(c.shape[k]);
    Dims out = permuted(random() % 2 ? dense(laid_out, c.itemsize) : padded(laid_out, c.itemsize, random), order);
    for (int64_t k = 0; k < rank; ++k) {
      if (random() % 6 == 0) out[k] = -out[k];
      if (broadcast && random() % 6 == 0) out[k] = 0;
    }
    return out;
  };
  c.d_strides = random() % 2 ? dense(c.shape, c.itemsize) : strides(false);
  c.s_strides = strides(true);
  c.d_shift = random() % 2 ? 0 : static_cast<int64_t>(random() % 64);
  c.transfer_bytes = random() % 2 ? 0 : int64_t{1} << 30;  // so that small copies use the code path of large ones too
  return c;
}

TEST(StridedCopy, MatchesTheExampleInTheHeader) {
  const Case c{{4, 6}, {24, 4}, {32, 4}, 4};
  Memories memories(c);
  memories.copy().run();
  EXPECT_TRUE(memories.right());
}

/// Runs with each instruction set in turn. The largest, which is the default, comes last.
class StridedCopyByIsa : public testing::Test {
 protected:
  template <class F>
  static void with_each_isa(F test) {
    for (const Isa isa : supported_isas()) {
      set_active_isa(to_string(isa), "test");
      SCOPED_TRACE(to_string(isa));
      test();
      if (HasFatalFailure()) return;
    }
  }
};

TEST_F(StridedCopyByIsa, EqualsAnElementLoopForRandomLayouts) {
  with_each_isa([] {
    std::mt19937_64 random(20240917);
    for (int i = 0; i < 60 * kThoroughness; ++i) {
      expect_right(random_case(random, 3000));
      if (HasFatalFailure()) return;
    }
  });
}

TEST_F(StridedCopyByIsa, EqualsAnElementLoopForBiggerRandomLayouts) {
  with_each_isa([] {
    std::mt19937_64 random(31);
    for (int i = 0; i < 2 * kThoroughness; ++i) {
      expect_right(random_case(random, 200000), 4096);
      if (HasFatalFailure()) return;
    }
  });
}

/// Copies blocks of columns of a matrix, whose rows have `cuts * run` bytes, to one dense buffer each.
void expect_right_together(int64_t cuts, int64_t run, int64_t itemsize, int64_t rows, int64_t source_shift,
                           int64_t destination_shift) {
  const int64_t pitch = cuts * run + 8;
  std::mt19937_64 random(11);
  const ByteArray source = test::random_bytes(random, rows * pitch + source_shift);
  ByteArray memory(static_cast<size_t>(cuts * (rows * run + 64) + 128), std::byte{0xA5});
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()) % 64);
  const int64_t first = 64 - past + destination_shift;
  ByteArray expected = memory;
  std::vector<StridedCopy> copies;
  std::vector<const StridedCopy*> together;
  for (int64_t c = 0; c < cuts; ++c) {
    std::byte* const to = memory.data() + first + c * (rows * run + 64);
    const std::byte* const from = source.data() + source_shift + c * run;
    copies.emplace_back(to, Dims{run, itemsize}, from, Dims{pitch, itemsize}, Dims{rows, run / itemsize}, itemsize,
                        int64_t{1} << 30);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(expected.data() + first + c * (rows * run + 64) + r * run, from + r * pitch,
                  static_cast<size_t>(run));
    }
  }
  for (const StridedCopy& each : copies) together.push_back(&each);
  for (int64_t c = 1; c < cuts; ++c) {
    ASSERT_TRUE(copies[static_cast<size_t>(c)].continues(copies[static_cast<size_t>(c - 1)]));
    ASSERT_FALSE(copies[static_cast<size_t>(c - 1)].continues(copies[static_cast<size_t>(c)]));
  }
  for (const int64_t count : {int64_t{1}, int64_t{3}, copies[0].pieces(512)}) {
    std::fill(memory.begin(), memory.end(), std::byte{0xA5});
    const int64_t pieces = std::min(count, copies[0].pieces(64));
    for (int64_t i = 0; i < pieces; ++i) StridedCopy::run_together(together, pieces - 1 - i, pieces);
    ASSERT_EQ(memory, expected) << cuts << " cuts of " << run << " in " << pieces;
  }
}

TEST_F(StridedCopyByIsa, MergesCopiesThatContinueEachOther) {
  with_each_isa([] {
    for (const int64_t run : {1, 2, 4, 8, 12, 16, 24, 48, 64, 100, 128, 1000, 1024, 4096, 5000}) {
      for (const int64_t cuts : {2, 5}) {
        for (const int64_t shift : {0, 4}) {
          expect_right_together(cuts, run, run % 4 == 0 ? 4 : 1, std::max<int64_t>(30000 / run / kThoroughness, 7),
                                shift, shift * 3);
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(StridedCopy, DoesNotMergeSmallOrDistantCopies) {
  ByteArray from(4096);
  ByteArray to(4096);
  const auto column = [&](int64_t c, int64_t transfer_bytes) {
    return StridedCopy(to.data() + c * 512, {16, 1}, from.data() + c * 16, {64, 1}, {32, 16}, 1, transfer_bytes);
  };
  EXPECT_FALSE(column(1, 0).continues(column(0, 0)));
  EXPECT_TRUE(column(1, 1 << 30).continues(column(0, 1 << 30)));
  EXPECT_FALSE(column(2, 1 << 30).continues(column(0, 1 << 30)));
  EXPECT_FALSE(column(1, 1 << 30).continues(column(0, 0)));
}

TEST(StridedCopy, TransposesEveryItemSize) {
  for (int64_t itemsize = 1; itemsize <= 16; ++itemsize) {
    if (kThoroughness == 1 && itemsize % 4 != 0) continue;
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {16, 16}, {64, 64}, {65, 63}, {3, 500}, {500, 3}, {2, 1000}, {1000, 2}, {129, 257}, {1, 300}, {600, 20}}) {
      for (const int64_t transfer : {int64_t{0}, int64_t{1} << 30}) {
        expect_right({{rows, columns},
                      {columns * itemsize, itemsize},
                      {itemsize, rows * itemsize},
                      itemsize,
                      itemsize % 3 * 8,
                      transfer});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(StridedCopy, TransposesWithEitherSideReversed) {
  for (const int64_t itemsize : {1, 2, 4, 8, 16}) {
    const int64_t rows = 70;
    const int64_t columns = 90;
    expect_right({{rows, columns}, {columns * itemsize, itemsize}, {-itemsize, rows * itemsize}, itemsize});
    expect_right({{rows, columns}, {columns * itemsize, itemsize}, {itemsize, -rows * itemsize}, itemsize});
    expect_right({{rows, columns}, {columns * itemsize, itemsize}, {-itemsize, -rows * itemsize}, itemsize});
    expect_right({{rows, columns}, {-columns * itemsize, -itemsize}, {itemsize, rows * itemsize}, itemsize});
    expect_right({{5, rows, columns},
                  {columns * itemsize, 5 * columns * itemsize, itemsize},
                  {rows * columns * itemsize, itemsize, rows * itemsize},
                  itemsize});
  }
}

TEST(StridedCopy, ReversesAndSkipsEveryItemSize) {
  for (int64_t itemsize = 1; itemsize <= 16; ++itemsize) {
    if (kThoroughness == 1 && itemsize % 4 != 0) continue;
    for (const int64_t step : {-1, -2, 0, 2, 3}) {
      expect_right({{5000}, {itemsize}, {step * itemsize}, itemsize, 4, int64_t{1} << 30});
      expect_right({{30, 170}, {200 * itemsize, itemsize}, {600 * itemsize, step * itemsize}, itemsize, 0, 0});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StridedCopy, SplitsRunsOfEveryLengthIntoPieces) {
  for (const int64_t run : {1, 4, 24, 63, 64, 65, 100, 255, 256, 1000, 1023, 1024, 4000, 4096, 4100}) {
    for (const int64_t transfer : {int64_t{0}, int64_t{1} << 30}) {
      expect_right({{40, run}, {run, 1}, {run + 32, 1}, 1, 0, transfer}, 256);
      expect_right({{40, run}, {run + 32, 1}, {run, 1}, 1, 8, transfer}, 256);
      expect_right({{5, 8, run}, {8 * run, run, 1}, {0, run, 1}, 1, 0, transfer}, 256);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StridedCopy, CopiesAboveTheStreamingSize) {
  const int64_t side = 1200;  // 5.5 MiB of float32
  expect_right({{side * side}, {4}, {4}, 4, 20}, 1 << 20);
  if (kThoroughness == 1) return;
  expect_right({{side, side}, {side * 4, 4}, {4, side * 4}, 4}, 1 << 20);
  expect_right({{side, side}, {side * 4, 4}, {side * 8, 8}, 4}, 1 << 20);
  expect_right({{side, side}, {side * 4, 4}, {(side + 50) * 4, 4}, 4}, 1 << 20);
  expect_right({{side, side}, {(side + 50) * 4, 4}, {side * 4, 4}, 4, 4}, 1 << 20);
  expect_right({{side, side}, {side * 4, 4}, {0, 0}, 4}, 1 << 20);
}

TEST(StridedCopy, HasNoPiecesWhenEmpty) {
  std::byte memory[16] = {};
  const StridedCopy copy(memory, {0, 4}, memory, {0, 4}, {3, 0}, 4);
  EXPECT_EQ(copy.bytes(), 0);
  EXPECT_EQ(copy.pieces(1), 0);
  copy.run();
}

TEST(StridedCopy, CopiesAScalarInOnePiece) {
  const double from = -0.0;
  double to = 1.0;
  const StridedCopy copy(&to, {}, &from, {}, {}, 8);
  EXPECT_EQ(copy.bytes(), 8);
  EXPECT_EQ(copy.pieces(1), 1);
  copy.run();
  EXPECT_EQ(std::signbit(to), true);
}

TEST(StridedCopy, CountsPiecesByBytes) {
  ByteArray from(1 << 20);
  ByteArray to(1 << 20);
  const StridedCopy copy(to.data(), {1}, from.data(), {1}, {1 << 20}, 1);
  EXPECT_EQ(copy.pieces(1 << 20), 1);
  EXPECT_EQ(copy.pieces(1 << 18), 4);
  EXPECT_EQ(copy.pieces((1 << 20) - 1), 2);
  EXPECT_EQ(copy.pieces(int64_t{1} << 40), 1);
}

TEST(StridedCopy, SplitsDenseDestinationsAtCacheLines) {
  const int64_t bytes = 100000;
  ByteArray from(static_cast<size_t>(bytes), std::byte{1});
  for (const int64_t shift : {0, 4, 60}) {
    ByteArray memory(static_cast<size_t>(bytes + 128));
    const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()) % 64);
    std::byte* const to = memory.data() + 64 - misaligned + shift;
    const StridedCopy copy(to, {4}, from.data(), {4}, {bytes / 4}, 4);
    copy.run(0, 3);
    int64_t end = 0;
    while (to[end] == std::byte{1}) ++end;
    EXPECT_EQ((shift + end) % 64, 0) << shift;
    EXPECT_NEAR(static_cast<double>(end), static_cast<double>(bytes) / 3, 64) << shift;
  }
}

TEST(StridedCopy, KeepsEveryBit) {
  std::vector<uint32_t> from(4096);
  for (uint32_t i = 0; i < 4096; ++i) from[i] = 0x7F800000u | i * 2049u;  // infinities and NaNs with payloads
  std::vector<uint32_t> to(4096);
  StridedCopy(to.data(), {256, 4}, from.data(), {4, 256}, {64, 64}, 4).run();
  for (size_t r = 0; r < 64; ++r) {
    for (size_t c = 0; c < 64; ++c) ASSERT_EQ(to[r * 64 + c], from[c * 64 + r]);
  }
}

}  // namespace
}  // namespace artifex_devices
