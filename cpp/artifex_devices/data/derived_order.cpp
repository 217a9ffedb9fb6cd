// SPDX-License-Identifier: Apache-2.0
// Orders that repeat, cut, choose from or join others.
#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/data/mix_schedule.h"
#include "artifex_devices/data/order.h"

namespace artifex_devices {
namespace {

class Repeated final : public Order {
 public:
  Repeated(Ptr order, std::optional<int64_t> size, std::optional<int64_t> times)
      : Order(size.value_or(0), !size, order->leaves(), order->marks()),
        order_(std::move(order)),
        times_(times ? static_cast<uint64_t>(*times) : kOfEndless) {}

  void find(const Block& block) const override {
    const int64_t length = order_->size();
    for (int i = 0; i < block.count; ++i) {
      const auto repeats = static_cast<uint64_t>(block.position[i] / length);
      block.epoch[i] = block.epoch[i] * times_ + repeats;
      block.shuffle_epoch[i] = block.shuffle_epoch[i] * times_ + repeats;
      block.position[i] %= length;
    }
    order_->find(block);
  }

 private:
  // Part of an endless repetition may be repeated: its epochs are then others too.
  static constexpr uint64_t kOfEndless = 0x9e3779b97f4a7c15U;

  Ptr order_;
  uint64_t times_;
};

class Sliced final : public Order {
 public:
  Sliced(Ptr order, int64_t start, std::optional<int64_t> count, int64_t step)
      : Order(count.value_or(0), !count, order->leaves(), order->marks()),
        order_(std::move(order)),
        start_(start),
        step_(step) {}

  void find(const Block& block) const override {
    for (int i = 0; i < block.count; ++i) block.position[i] = start_ + block.position[i] * step_;
    std::fill_n(block.shuffle_epoch, block.count, uint64_t{0});
    order_->find(block);
  }

 private:
  Ptr order_;
  int64_t start_;
  int64_t step_;
};

class Selected final : public Order {
 public:
  Selected(Ptr order, std::vector<int64_t> chosen)
      : Order(static_cast<int64_t>(chosen.size()), false, order->leaves(), order->marks()),
        order_(std::move(order)),
        chosen_(std::move(chosen)) {}

  void find(const Block& block) const override {
    for (int i = 0; i < block.count; ++i) block.position[i] = chosen_[static_cast<size_t>(block.position[i])];
    std::fill_n(block.shuffle_epoch, block.count, uint64_t{0});
    order_->find(block);
  }

 private:
  Ptr order_;
  std::vector<int64_t> chosen_;
};

int sum_of(const std::vector<Order::Ptr>& orders, int (Order::*count)() const noexcept) {
  int total = 0;
  for (const Order::Ptr& order : orders) total += (*order.*count)();
  return total;
}

/// Several orders: the positions of a block are sorted by the order that they go to.
class Joined : public Order {
 protected:
  Joined(std::optional<int64_t> size, std::vector<Ptr> orders)
      : Order(size.value_or(0), !size, sum_of(orders, &Order::leaves), sum_of(orders, &Order::marks)),
        orders_(std::move(orders)) {}

  /// Asks each order for its positions; `which[i]` is the order of position i.
  void find_in_each(const Block& block, const int* which) const {
    int first_leaf = block.first_leaf;
    int first_mark = block.first_mark;
    std::array<int64_t, kBlock> position;
    std::array<uint64_t, kBlock> epoch;
    std::array<uint64_t, kBlock> shuffle_epoch;
    std::array<int32_t, kBlock> leaf;
    std::array<int32_t, kBlock> row;
    std::array<int, kBlock> place;
    // The places of each order's positions, one order after the other.
    std::vector<int> end(orders_.size() + 1);
    for (int i = 0; i < block.count; ++i) ++end[static_cast<size_t>(which[i]) + 1];
    std::partial_sum(end.begin(), end.end(), end.begin());
    std::vector<int> next(end.begin(), std::prev(end.end()));
    for (int i = 0; i < block.count; ++i) place[static_cast<size_t>(next[static_cast<size_t>(which[i])]++)] = i;
    for (size_t number = 0; number < orders_.size(); ++number) {
      const Order& order = *orders_[number];
      const int begin = end[number];
      const int count = end[number + 1] - begin;
      for (int k = 0; k < count; ++k) {
        const int i = place[static_cast<size_t>(begin + k)];
        position[static_cast<size_t>(k)] = block.position[i];
        epoch[static_cast<size_t>(k)] = block.epoch[i];
        shuffle_epoch[static_cast<size_t>(k)] = block.shuffle_epoch[i];
        row[static_cast<size_t>(k)] = block.row[i];
      }
      if (count > 0) {
        order.find({count, position.data(), epoch.data(), shuffle_epoch.data(), leaf.data(), block.keys,
                    block.key_stride, row.data(), first_leaf, first_mark});
        for (int k = 0; k < count; ++k) {
          const int i = place[static_cast<size_t>(begin + k)];
          block.position[i] = position[static_cast<size_t>(k)];
          block.leaf[i] = leaf[static_cast<size_t>(k)];
        }
      }
      first_leaf += order.leaves();
      first_mark += order.marks();
    }
  }

 private:
  std::vector<Ptr> orders_;
};

class Concatenated final : public Joined {
 public:
  Concatenated(std::optional<int64_t> size, std::vector<Ptr> orders, std::vector<int64_t> ends)
      : Joined(size, std::move(orders)), ends_(std::move(ends)) {}

  void find(const Block& block) const override {
    std::array<int, kBlock> which;
    for (int i = 0; i < block.count; ++i) {
      const auto end = std::upper_bound(ends_.begin(), ends_.end(), block.position[i]);
      which[static_cast<size_t>(i)] = static_cast<int>(end - ends_.begin());
      if (end != ends_.begin()) block.position[i] -= *std::prev(end);
    }
    find_in_each(block, which.data());
  }

 private:
  std::vector<int64_t> ends_;
};

class Mixed final : public Joined {
 public:
  Mixed(std::optional<int64_t> size, std::vector<Ptr> orders, MixSchedule schedule)
      : Joined(size, std::move(orders)), schedule_(std::move(schedule)) {}

  void find(const Block& block) const override {
    std::array<int, kBlock> which;
    for (int i = 0; i < block.count; ++i) {
      const MixSchedule::Use use = schedule_(block.position[i]);
      which[static_cast<size_t>(i)] = use.source;
      block.position[i] = use.occurrence;
    }
    find_in_each(block, which.data());
  }

 private:
  MixSchedule schedule_;
};

}  // namespace

Order::Ptr repeated(Order::Ptr order, std::optional<int64_t> times) {
  if (times && *times < 0)
    throw_error("repeat: times is {}; expected 0 or more; write repeat() for an endless stream", *times);
  if (order->endless())
    throw_error("repeat: the stream is endless; expected one with a length; call repeat() once only");
  if (order->size() == 0 && !times) {
    throw_error("repeat: the stream is empty; expected at least one sample to repeat; check the source or the filter");
  }
  const auto size = times ? checked_mul(order->size(), *times) : std::nullopt;
  if (times && !size) {
    throw_error(
        "repeat: {} times {} samples do not fit 63 bits; expected fewer times; write repeat() for an endless stream",
        *times, order->size());
  }
  return std::make_shared<Repeated>(std::move(order), size, times);
}

Order::Ptr sliced(Order::Ptr order, int64_t start, std::optional<int64_t> count, int64_t step) {
  if ((count && *count < 0) || step == 0)
    throw_error("slice: count is {} and step {}; expected 0 or more and a step that is not 0", count.value_or(0), step);
  if (!count || *count > 0) {
    const auto last = count ? checked_mul(*count - 1, step) : std::nullopt;
    const auto end = last ? checked_add(start, *last) : std::nullopt;
    const bool fits = count ? end && *end >= 0 && *end < order->size() : order->endless() && step > 0;
    if (start < 0 || start >= order->size() || !fits) {
      throw_error("slice: positions from {} by {} are outside the order; expected positions below {}; slice less",
                  start, step, order->size());
    }
  }
  return std::make_shared<Sliced>(std::move(order), start, count, step);
}

Order::Ptr selected(Order::Ptr order, std::vector<int64_t> chosen) {
  for (const int64_t position : chosen) {
    if (position < 0 || position >= order->size()) {
      throw_error<IndexOutOfRange>(
          "filter: position {} is outside the stream; expected 0 to {}; give positions of samples", position,
          order->size() - 1);
    }
  }
  return std::make_shared<Selected>(std::move(order), std::move(chosen));
}

Order::Ptr concatenated(std::vector<Order::Ptr> orders) {
  std::vector<int64_t> ends;
  std::optional<int64_t> size = 0;
  for (const Order::Ptr& order : orders) {
    if (!size) {
      throw_error("concatenate: a stream before the last one is endless; expected lengths; use take(n) on it");
    }
    const auto end = order->endless() ? std::nullopt : checked_add(*size, order->size());
    if (!end && !order->endless())
      throw_error("concatenate: the lengths do not fit 63 bits; expected a smaller sum; join fewer streams");
    size = end;
    ends.push_back(end.value_or(INT64_MAX));
  }
  return std::make_shared<Concatenated>(size, std::move(orders), std::move(ends));
}

Order::Ptr mixed(std::vector<Order::Ptr> orders, const std::vector<int64_t>& parts, bool repeat) {
  if (orders.size() != parts.size())
    throw_error("mix: {} streams and {} weights; expected one weight for each", orders.size(), parts.size());
  MixSchedule schedule(parts);
  std::optional<int64_t> size;
  for (size_t i = 0; i < orders.size(); ++i) {
    if (parts[i] == 0 || orders[i]->endless()) continue;
    if (repeat) {
      orders[i] = repeated(std::move(orders[i]), std::nullopt);
    } else {
      const auto end = schedule.position_of(static_cast<int>(i), orders[i]->size());
      if (end) size = std::min(size.value_or(*end), *end);
    }
  }
  return std::make_shared<Mixed>(size, std::move(orders), std::move(schedule));
}

}  // namespace artifex_devices
