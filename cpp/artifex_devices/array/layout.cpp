// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/layout.h"

#include <charconv>
#include <vector>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

void check_order(const Dims& order) {
  constexpr size_t kMostShown = 8;
  if (order.size() > Layout::kMaxRank) {
    throw_error("Layout: minor_to_major has {} entries; expected at most {}", order.size(), Layout::kMaxRank);
  }
  std::vector<std::string> wrong;
  uint64_t seen = 0;
  for (int64_t i = 0; i < order.size(); ++i) {
    const int64_t dimension = order[i];
    if (dimension < 0 || dimension >= order.size()) {
      wrong.push_back(
          fmt::format("minor_to_major[{}] is {}; expected each of 0 to {} once", i, dimension, order.size() - 1));
      continue;
    }
    const uint64_t bit = uint64_t{1} << dimension;
    if ((seen & bit) != 0) {
      wrong.push_back(fmt::format("minor_to_major names dimension {} twice; expected a permutation", dimension));
    }
    seen |= bit;
  }
  if (wrong.empty()) return;
  if (wrong.size() > kMostShown) {
    const size_t more = wrong.size() - kMostShown;
    wrong.resize(kMostShown);
    wrong.push_back(fmt::format("and {} more", more));
  }
  throw_error("Layout: {}; write Layout((1, 0)) for two dimensions in row-major order", fmt::join(wrong, "; "));
}

}  // namespace

Layout::Layout(Dims minor_to_major) : minor_to_major_(std::move(minor_to_major)) { check_order(minor_to_major_); }

Layout Layout::row_major(int64_t rank) {
  Dims order(rank, 0);
  for (int64_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  return Layout(std::move(order));
}

Layout Layout::parse(std::string_view text) {
  constexpr size_t kMostShown = 80;
  const auto refuse = [&] {
    throw_error(
        "Layout.parse: {:?}{} is not an order of up to {} dimensions; expected one such as '{{1,0}}', without the "
        "tiles, element bits, tails and memory spaces of XLA, which Arrays do not have",
        text.substr(0, kMostShown), text.size() > kMostShown ? "..." : "", kMaxRank);
  };
  size_t at = 0;
  const auto next = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n')) ++at;
    return at < text.size() ? text[at] : '\0';
  };
  const auto take = [&](char letter) {
    if (next() != letter) return false;
    ++at;
    return true;
  };
  if (!take('{')) refuse();
  Dims order;
  while (!take('}')) {
    if (!order.empty() && !take(',')) refuse();
    next();
    int64_t dimension = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), dimension);
    if (error != std::errc() || order.size() == kMaxRank) refuse();
    at = static_cast<size_t>(end - text.data());
    order.push_back(dimension);
  }
  next();
  if (at != text.size()) refuse();
  return Layout(std::move(order));
}

Dims Layout::major_to_minor() const {
  Dims order(rank(), 0);
  for (int64_t i = 0; i < rank(); ++i) order[i] = minor_to_major_[rank() - 1 - i];
  return order;
}

bool Layout::is_row_major() const noexcept {
  for (int64_t i = 0; i < rank(); ++i) {
    if (minor_to_major_[i] != rank() - 1 - i) return false;
  }
  return true;
}

std::string Layout::to_string() const { return fmt::format("{{{}}}", fmt::join(minor_to_major_, ",")); }

Dims strides_of_order(const Dims& shape, const Dims& minor_to_major, int64_t itemsize) {
  Dims strides(shape.size(), itemsize);
  int64_t stride = itemsize;
  for (const int64_t d : minor_to_major) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

}  // namespace artifex_devices
