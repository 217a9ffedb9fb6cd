// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

class Range final : public Order {
 public:
  explicit Range(std::optional<int64_t> size) noexcept : Order(size.value_or(0), !size, 1, 0) {}

  void find(const Block& block) const override { std::fill_n(block.leaf, block.count, block.first_leaf); }
};

class Marked final : public Order {
 public:
  explicit Marked(Ptr order) noexcept
      : Order(order->size(), order->endless(), order->leaves(), order->marks() + 1), order_(std::move(order)) {}

  void find(const Block& block) const override {
    if (block.keys != nullptr) {
      uint64_t* keys = block.keys + (block.first_mark + order_->marks()) * block.key_stride;
      for (int i = 0; i < block.count; ++i) {
        keys[2 * block.row[i]] = block.epoch[i];
        keys[2 * block.row[i] + 1] = static_cast<uint64_t>(block.position[i]);
      }
    }
    order_->find(block);
  }

 private:
  Ptr order_;
};

}  // namespace

void Order::resolve(std::span<const int64_t> positions, ResolvedPositions found) const {
  std::array<uint64_t, kBlock> epoch;
  std::array<uint64_t, kBlock> shuffle_epoch;
  std::array<int32_t, kBlock> row;
  for (size_t begin = 0; begin < positions.size(); begin += kBlock) {
    const int count = static_cast<int>(std::min<size_t>(kBlock, positions.size() - begin));
    for (int i = 0; i < count; ++i) {
      const int64_t position = positions[begin + static_cast<size_t>(i)];
      if (position < 0 || position >= size_) {
        throw_error<IndexOutOfRange>("position {} is outside the order; expected 0 to {}; ask for len(stream) first",
                                     position, size_ - 1);
      }
      found.index[begin + static_cast<size_t>(i)] = position;
    }
    std::fill_n(epoch.begin(), count, uint64_t{0});
    std::fill_n(shuffle_epoch.begin(), count, uint64_t{0});
    std::iota(row.begin(), row.begin() + count, static_cast<int32_t>(0));
    find({.count = count,
          .position = found.index.data() + begin,
          .epoch = epoch.data(),
          .shuffle_epoch = shuffle_epoch.data(),
          .leaf = found.leaf.data() + begin,
          .keys = found.keys.empty() ? nullptr : found.keys.data() + 2 * begin,
          .key_stride = 2 * static_cast<int64_t>(positions.size()),
          .row = row.data(),
          .first_leaf = 0,
          .first_mark = 0});
  }
}

void Order::indices(int64_t start, std::span<int64_t> found) const {
  if (start < 0 || start > size_ || static_cast<int64_t>(found.size()) > size_ - start) {
    throw_error<IndexOutOfRange>(
        "indices: {} positions from {} are outside the order; expected positions below {}; ask for len(stream) first",
        found.size(), start, size_);
  }
  std::array<int32_t, kBlock> leaf;
  std::array<int64_t, kBlock> position;
  for (size_t begin = 0; begin < found.size(); begin += kBlock) {
    const size_t count = std::min<size_t>(kBlock, found.size() - begin);
    std::iota(position.begin(), position.begin() + static_cast<std::ptrdiff_t>(count),
              start + static_cast<int64_t>(begin));
    resolve({position.data(), count}, {.leaf = {leaf.data(), count}, .index = found.subspan(begin, count), .keys = {}});
  }
}

Order::Ptr range_order(std::optional<int64_t> size) {
  if (size && *size < 0) throw_error("range: the size is {}; expected 0 or more; give the length of the source", *size);
  return std::make_shared<Range>(size);
}

Order::Ptr marked(Order::Ptr order) { return std::make_shared<Marked>(std::move(order)); }

}  // namespace artifex_devices
