// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/chain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "../base/byte_array.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/collective/reduce.h"
#include "channel_ends.h"

namespace artifex_devices {
namespace {

using std::chrono_literals::operator""ms;

using Bytes = test::ByteArray;

HostView view(Bytes& data, DType dtype) {
  const int64_t count = static_cast<int64_t>(data.size()) / itemsize(dtype);
  return {data.data(), dtype, Dims{count}, Dims{itemsize(dtype)}, true, nullptr, nullptr};
}

/// Numbers of about one: bits of two bytes that make them for each of the types below, also as halves.
Bytes block_of(DType dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes made(static_cast<size_t>(count * itemsize(dtype)));
  for (int64_t i = 0; i < count; ++i) {
    std::byte* at = made.data() + i * itemsize(dtype);
    if (dtype == DType::kFloat32) {
      const float value = static_cast<float>(random()) / 4e9F + 0.5F;
      std::memcpy(at, &value, sizeof value);
    } else {
      const uint16_t bits = static_cast<uint16_t>((dtype == DType::kBFloat16 ? 0x3f00U : 0x3800U) + random() % 1024);
      std::memcpy(at, &bits, sizeof bits);
    }
  }
  return made;
}

/// Each process of the row has so many blocks; each must end with the bits of all_reduce, or, where `in_shares`, with
/// those of its share, which is as long as it has blocks.
void check(Reduction reduction, DType dtype, int64_t count, const std::vector<int>& blocks_of,
           const std::vector<int64_t>& row, bool in_shares = false) {
  std::vector<Bytes> blocks;
  for (const int each : blocks_of) {
    for (int i = 0; i < each; ++i) blocks.push_back(block_of(dtype, count, static_cast<uint32_t>(blocks.size())));
  }
  std::vector<HostView> all;
  for (Bytes& block : blocks) all.push_back(view(block, dtype));
  Bytes expected(static_cast<size_t>(count * itemsize(dtype)));
  all_reduce(reduction, all, view(expected, dtype));

  const auto channels = ends(static_cast<int64_t>(row.size()));
  std::vector<Bytes> results;
  std::vector<ReductionChain::Share> shares;
  const auto unit = count / static_cast<int64_t>(all.size());
  int64_t begin = 0;
  for (const int each : blocks_of) {
    const int64_t size = in_shares ? each * unit : count;
    shares.push_back(in_shares ? ReductionChain::Share{begin, begin} : ReductionChain::Share{0, count});
    results.emplace_back(static_cast<size_t>(size * itemsize(dtype)));
    begin += size;
  }
  std::vector<std::thread> processes;
  auto next = all.begin();
  for (size_t place = 0; place < row.size(); ++place) {
    const std::vector<HostView> mine(next, next + blocks_of[place]);
    next += blocks_of[place];
    processes.emplace_back([&, place, mine] {
      ReductionChain chain(*channels[static_cast<size_t>(row[place])], place > 0 ? row[place - 1] : -1,
                           place + 1 < row.size() ? row[place + 1] : -1, reduction, mine, view(results[place], dtype),
                           shares[place]);
      while (!chain.advance(1ms)) {
      }
    });
  }
  for (std::thread& process : processes) process.join();
  for (size_t place = 0; place < row.size(); ++place) {
    const auto from = expected.begin() + shares[place].begin * itemsize(dtype);
    EXPECT_EQ(results[place], Bytes(from, from + static_cast<int64_t>(results[place].size())));
  }
}

TEST(ReductionChain, ReturnsTheBitsOfASingleProcess) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt16}) {
    const int64_t more_than_a_channel = 17 * SharedChannels::kPieceBytes / itemsize(dtype) + 17;  // which has 16 pieces
    for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct, Reduction::kMax}) {
      for (const int64_t count : {int64_t{0}, int64_t{1}, more_than_a_channel}) {
        check(reduction, dtype, count, {2, 2}, {0, 1});
      }
      check(reduction, dtype, 200'003, {2, 1, 3}, {2, 0, 1});
    }
  }
}

TEST(ReductionChain, GivesEachProcessOnlyItsShare) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    check(Reduction::kSum, dtype, 4'000'000, {2, 2}, {0, 1}, true);
    check(Reduction::kSum, dtype, 1'200'006, {1, 3, 2}, {1, 2, 0}, true);
    check(Reduction::kSum, dtype, 6, {1, 3, 2}, {0, 1, 2}, true);
  }
}

TEST(ReductionChain, ReusesTheSameChannels) {
  const auto channels = ends(2);
  std::vector<Bytes> blocks{block_of(DType::kFloat32, 100'000, 1), block_of(DType::kFloat32, 100'000, 2)};
  Bytes expected(blocks[0].size());
  const std::vector<HostView> both{view(blocks[0], DType::kFloat32), view(blocks[1], DType::kFloat32)};
  all_reduce(Reduction::kSum, both, view(expected, DType::kFloat32));
  const auto run = [&](int64_t me, Bytes& result) {
    for (int turn = 0; turn < 20; ++turn) {
      std::fill(result.begin(), result.end(), std::byte{0});
      const std::vector<HostView> mine{both[static_cast<size_t>(me)]};
      ReductionChain chain(*channels[static_cast<size_t>(me)], me - 1, me == 0 ? 1 : -1, Reduction::kSum, mine,
                           view(result, DType::kFloat32), {0, 100'000});
      while (!chain.advance(1ms)) {
      }
      ASSERT_EQ(result, expected);
    }
  };
  std::vector<Bytes> results(2, Bytes(expected.size()));
  std::thread other([&] { run(1, results[1]); });
  run(0, results[0]);
  other.join();
}

TEST(ReductionChain, StopsWaitingAtItsTimeout) {
  const auto channels = ends(2);
  Bytes block = block_of(DType::kFloat32, 10, 1);
  Bytes result(block.size());
  ReductionChain chain(*channels[1], 0, -1, Reduction::kSum, {view(block, DType::kFloat32)},
                       view(result, DType::kFloat32), {0, 10});
  EXPECT_FALSE(chain.advance(1ms));
  EXPECT_EQ(chain.progress(), 0);
}

TEST(ReductionChain, RefusesInvalidArgumentsBeforeWaiting) {
  const auto channels = ends(2);
  Bytes block(64);
  Bytes shorter(32);
  const auto make = [&](int64_t after, Reduction reduction, const std::vector<HostView>& blocks, Bytes& out,
                        ReductionChain::Share share) {
    ReductionChain(*channels[0], -1, after, reduction, blocks,
                   view(out, blocks.empty() ? DType::kFloat32 : blocks[0].dtype), share);
  };
  const HostView whole = view(block, DType::kFloat32);
  EXPECT_THROW(make(-1, Reduction::kSum, {whole}, block, {0, 0}), InvalidArgument);
  EXPECT_THROW(make(1, Reduction::kSum, {}, block, {0, 0}), InvalidArgument);  // the first one of the row
  EXPECT_THROW(make(1, Reduction::kSum, {whole, view(shorter, DType::kFloat32)}, block, {0, 0}), InvalidArgument);
  EXPECT_THROW(make(1, Reduction::kSum, {view(shorter, DType::kFloat32)}, block, {0, 0}), InvalidArgument);
  EXPECT_THROW(make(1, Reduction::kSum, {whole}, shorter, {9, 0}), InvalidArgument);
  EXPECT_THROW(make(1, Reduction::kSum, {whole}, block, {0, 17}), InvalidArgument);
  EXPECT_THROW(make(1, Reduction::kMax, {view(block, DType::kComplex64)}, block, {0, 0}), TypeMismatch);
}

}  // namespace
}  // namespace artifex_devices
