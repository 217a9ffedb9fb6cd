// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/data/mix_schedule.h"
#include "artifex_devices/data/packed_rows.h"
#include "artifex_devices/data/permutation.h"

namespace artifex_devices {
namespace {

std::vector<int64_t> all_of(const Order::Ptr& order, int64_t count) {
  std::vector<int64_t> found(static_cast<size_t>(count));
  order->indices(0, found);
  return found;
}

std::vector<int64_t> range_of(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Permutation, HasEachNumberOnce) {
  for (const uint64_t size : {1, 2, 3, 5, 7, 8, 9, 31, 32, 33, 1000, 65537}) {
    const Permutation permutation(size, mixed_bits(size));
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t value = permutation(i);
      ASSERT_LT(value, size);
      EXPECT_FALSE(seen[value]);
      seen[value] = true;
    }
  }
}

TEST(Permutation, OfTheLargestSizesStaysInside) {
  for (const uint64_t size : {(uint64_t{1} << 63) - 1, uint64_t{1} << 63, (uint64_t{1} << 62) + 1}) {
    const Permutation permutation(size, 5);
    for (const uint64_t position : {uint64_t{0}, uint64_t{1}, size / 2, size - 1})
      EXPECT_LT(permutation(position), size);
  }
}

// The statistic has the mean `freedom` and the variance 2 * freedom; seeds are fixed, so the bound is met or not.
double deviations(double statistic, double freedom) { return (statistic - freedom) / std::sqrt(2 * freedom); }

TEST(Permutation, OrdersOfFourAreEquallyOften) {
  constexpr int kSeeds = 240'000;
  std::map<std::vector<uint64_t>, int> count;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Permutation permutation(4, mixed_bits(seed));
    ++count[{permutation(0), permutation(1), permutation(2), permutation(3)}];
  }
  ASSERT_EQ(count.size(), 24);
  double statistic = 0;
  for (const auto& [order, times] : count) statistic += std::pow(times - kSeeds / 24.0, 2) / (kSeeds / 24.0);
  EXPECT_LT(std::abs(deviations(statistic, 23)), 4);
}

TEST(Permutation, EveryPositionTakesEveryValueEquallyOften) {
  for (const size_t size : {5, 10, 16, 100, 128}) {
    const auto seeds = static_cast<uint64_t>(std::max<size_t>(20'000, 200 * size));
    std::vector<double> count(size * size);
    std::vector<double> difference(size);  // to the value before: neighbours must not stay neighbours
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const Permutation permutation(size, mixed_bits(seed));
      uint64_t last = 0;
      for (size_t i = 0; i < size; ++i) {
        const uint64_t value = permutation(i);
        ++count[i * size + value];
        if (i > 0) ++difference[(value + size - last) % size];
        last = value;
      }
    }
    const double expected = static_cast<double>(seeds) / static_cast<double>(size);
    double statistic = 0;
    for (const double each : count) statistic += (each - expected) * (each - expected) / expected;
    const auto freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(std::abs(deviations(statistic, freedom)), 4) << size;
    double of_differences = 0;
    for (size_t k = 1; k < size; ++k)
      of_differences += std::pow(difference[k] - static_cast<double>(seeds), 2) / static_cast<double>(seeds);
    EXPECT_LT(std::abs(deviations(of_differences, static_cast<double>(size - 2))), 4) << size;
  }
}

TEST(MixSchedule, UsesEachSourceWithinOneOfItsShare) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<int64_t> parts(1 + random() % 20);
    for (int64_t& part : parts) part = random() % 3 == 0 ? random() % 1000 : random() % 10;
    parts[0] += 1;
    const int64_t total = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    const MixSchedule schedule(parts);
    std::vector<int64_t> used(parts.size());
    for (int64_t position = 0; position < 2 * total + 3; ++position) {
      const MixSchedule::Use use = schedule(position);
      const auto source = static_cast<size_t>(use.source);
      ASSERT_EQ(use.occurrence, used[source]++);
      ASSERT_EQ(schedule.position_of(use.source, use.occurrence), position);
      for (size_t i = 0; i < parts.size(); ++i)  // |used - k * part / total| < 1
        ASSERT_LT(std::abs(used[i] * total - (position + 1) * parts[i]), total);
    }
  }
}

TEST(MixSchedule, RefusesPartsThatCannotBeUsed) {
  EXPECT_THROW(MixSchedule(std::vector<int64_t>{}), InvalidArgument);
  EXPECT_THROW(MixSchedule(std::vector<int64_t>{0, 0}), InvalidArgument);
  EXPECT_THROW(MixSchedule(std::vector<int64_t>{-1, 2}), InvalidArgument);
  EXPECT_THROW(MixSchedule(std::vector<int64_t>{MixSchedule::kMostParts, 1}), InvalidArgument);
}

TEST(Order, EpochsOfAShuffleDiffer) {
  const Order::Ptr order = repeated(shuffled(range_order(100), 7, 0), 3);
  const std::vector<int64_t> found = all_of(order, 300);
  std::vector<std::vector<int64_t>> epochs;
  for (int e = 0; e < 3; ++e) {
    std::vector<int64_t> epoch(found.begin() + 100 * e, found.begin() + 100 * (e + 1));
    EXPECT_NE(epoch, range_of(100));
    for (const auto& other : epochs) EXPECT_NE(epoch, other);
    epochs.push_back(epoch);
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, range_of(100));
  }
}

TEST(Order, WindowsAndShardsStayTogether) {
  const std::vector<int64_t> windows = all_of(shuffled(range_order(25), 7, 10), 25);
  for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(windows[static_cast<size_t>(i)] / 10, i / 10);
  const std::vector<int64_t> shards = all_of(shuffled_shards(range_order(25), 7, {0, 4, 5, 20}), 25);
  std::vector<int> order;
  for (const int64_t index : shards) {
    const int shard = index < 4 ? 0 : index < 5 ? 1 : index < 20 ? 2 : 3;
    if (order.empty() || order.back() != shard) order.push_back(shard);
  }
  EXPECT_EQ(order.size(), 4);  // each shard once
  std::vector<int64_t> sorted = shards;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, range_of(25));
}

TEST(Order, ResolvesPositionsOfSeveralSourcesInAnyOrder) {
  const Order::Ptr first = marked(sliced(range_order(10), 9, 5, -2));  // 9 7 5 3 1
  const Order::Ptr both = marked(concatenated({first, repeated(marked(range_order(2)), std::nullopt)}));
  EXPECT_TRUE(both->endless());
  const std::vector<int64_t> positions = {8, 0, 5, 4};
  std::vector<int32_t> leaf(4);
  std::vector<int64_t> index(4);
  std::vector<uint64_t> keys(3 * 4 * 2, 99);
  both->resolve(positions, {leaf, index, keys});
  EXPECT_EQ(leaf, (std::vector<int32_t>{1, 0, 1, 0}));
  EXPECT_EQ(index, (std::vector<int64_t>{1, 9, 0, 1}));
  const std::vector<uint64_t> expected = {99, 99, 0,  0,  99, 99, 0,  4,   // the mark of `first`: untouched for others
                                          1,  1,  99, 99, 0,  0,  99, 99,  // epoch and position in the second
                                          0,  8,  0,  0,  0,  5,  0,  4};
  EXPECT_EQ(keys, expected);
}

TEST(Order, RefusesPositionsOutsideAndSizesThatOverflow) {
  std::vector<int64_t> found(3);
  EXPECT_THROW(range_order(2)->indices(0, found), IndexOutOfRange);
  EXPECT_THROW(range_order(5)->indices(-1, found), IndexOutOfRange);
  EXPECT_THROW(range_order(5)->indices(INT64_MAX, found), IndexOutOfRange);
  EXPECT_THROW(range_order(-1), InvalidArgument);
  EXPECT_THROW(repeated(range_order(INT64_MAX), 2), InvalidArgument);
  EXPECT_THROW(repeated(range_order(0), std::nullopt), InvalidArgument);
  EXPECT_THROW(repeated(range_order(std::nullopt), 2), InvalidArgument);
  EXPECT_THROW(sliced(range_order(5), 2, 4, 1), InvalidArgument);
  EXPECT_THROW(sliced(range_order(5), 0, std::nullopt, 0), InvalidArgument);
  EXPECT_THROW(selected(range_order(5), {5}), IndexOutOfRange);
  EXPECT_THROW(concatenated({range_order(std::nullopt), range_order(1)}), InvalidArgument);
  EXPECT_THROW(concatenated({range_order(INT64_MAX), range_order(1)}), InvalidArgument);
  EXPECT_THROW(shuffled(range_order(std::nullopt), 1, 0), InvalidArgument);
  EXPECT_THROW(shuffled_shards(range_order(5), 1, {0, 5}), InvalidArgument);
}

TEST(Order, AMixEndsWhereAStreamHasNoMore) {
  // b a b b a b ...: the third use of a is at position 7.
  const Order::Ptr mix = mixed({range_order(2), range_order(100)}, {1, 2}, false);
  std::vector<int32_t> leaf(static_cast<size_t>(mix->size()));
  std::vector<int64_t> index(leaf.size());
  mix->resolve(range_of(mix->size()), {leaf, index, {}});
  EXPECT_EQ(std::count(leaf.begin(), leaf.end(), 0), 2);
  EXPECT_TRUE(mixed({range_order(2), range_order(100)}, {1, 2}, true)->endless());
  EXPECT_EQ(mixed({range_order(0), range_order(3)}, {0, 2}, false)->size(), 3);
}

TEST(PackedRows, CutsSamplesAtRows) {
  const std::vector<int64_t> lengths = {3, 0, 9, 1};
  const PackedRows rows(range_order(4), {lengths}, 5, false);
  EXPECT_EQ(rows.size(), 3);
  std::vector<PackedRows::Piece> pieces;
  for (int64_t row = 0; row < 3; ++row) rows.append_pieces(row, pieces);
  const std::vector<std::vector<int64_t>> expected = {{0, 0, 3}, {2, 0, 2}, {2, 2, 5}, {2, 7, 2}, {3, 0, 1}};
  ASSERT_EQ(pieces.size(), expected.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ((std::vector<int64_t>{pieces[i].position, pieces[i].first, pieces[i].count}), expected[i]);
  EXPECT_THROW(rows.append_pieces(3, pieces), IndexOutOfRange);
  EXPECT_THROW(rows.append_pieces(-1, pieces), IndexOutOfRange);
}

TEST(PackedRows, TakesTheSumsOfAnEarlierRun) {
  std::vector<int64_t> lengths(1100);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<int64_t>(i % 7);
  const Order::Ptr order = repeated(shuffled(range_order(1100), 5, 0), std::nullopt);
  const PackedRows first(order, {lengths}, 5, false);
  std::vector<PackedRows::Piece> expected;
  first.append_pieces(5000, expected);
  const std::vector<int64_t> sums = first.sums();
  EXPECT_EQ(first.sum_count(), std::ssize(sums));
  EXPECT_GT(sums.back(), 25'000);

  PackedRows second(order, {lengths}, 5, false);
  EXPECT_TRUE(second.take_sums(std::span(sums).first(3)));
  EXPECT_TRUE(second.take_sums(sums));
  EXPECT_TRUE(second.take_sums(std::span(sums).first(3)));  // fewer than it has
  EXPECT_EQ(second.sums(), sums);
  std::vector<PackedRows::Piece> found;
  second.append_pieces(5000, found);
  second.append_pieces(6000, found);  // beyond the sums
  first.append_pieces(6000, expected);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].position, expected[i].position);
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_EQ(found[i].count, expected[i].count);
  }
}

TEST(PackedRows, RefusesSumsThatCannotBeItsOwn) {
  const std::vector<int64_t> lengths(600, 2);
  PackedRows rows(range_order(600), {lengths}, 5, false);
  for (const std::vector<int64_t>& sums :
       std::vector<std::vector<int64_t>>{{}, {1}, {0, 5, 4}, {0, 1024, 1200, 1300}}) {
    EXPECT_FALSE(rows.take_sums(sums));
  }
  EXPECT_EQ(rows.size(), 240);
  EXPECT_TRUE(rows.take_sums(rows.sums()));
  EXPECT_EQ(rows.size(), 240);
}

TEST(PackedRows, AnEndlessOrderWithoutTokensIsRefused) {
  const std::vector<int64_t> lengths = {0, 0};
  const PackedRows rows(repeated(range_order(2), std::nullopt), {lengths}, 5, false);
  EXPECT_EQ(rows.size(), std::nullopt);
  std::vector<PackedRows::Piece> pieces;
  EXPECT_THROW(rows.append_pieces(0, pieces), InvalidArgument);
}

TEST(PackedRows, RefusesLengthsThatDoNotFit) {
  const std::vector<int64_t> negative = {3, -1};
  EXPECT_THROW(PackedRows(range_order(2), {negative}, 5, false), InvalidArgument);
  const std::vector<int64_t> huge = {INT64_MAX, 1};
  EXPECT_THROW(PackedRows(range_order(2), {huge}, 5, false).size(), InvalidArgument);
  const std::vector<int64_t> few = {3};
  EXPECT_THROW(PackedRows(range_order(2), {few}, 5, false).size(), InvalidArgument);
  EXPECT_THROW(PackedRows(range_order(1), {few}, 2, true).size(), InvalidArgument);
  EXPECT_THROW(PackedRows(range_order(1), {few}, 0, true), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
