// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/layout.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

void append_numbers(std::string* text, const Dims& numbers) {
  for (int64_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) *text += ',';
    *text += numbers[i] == Layout::kCombine ? "*" : std::to_string(numbers[i]);
  }
}

class Faults {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (++count_ > 8) return;
    if (count_ > 1) text_ += "; ";
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }
  void refuse() const {
    if (count_ == 0) return;
    throw_error("Layout: {}{}; write Layout((1, 0)) for two dimensions in row-major order", text_,
                count_ > 8 ? fmt::format("; and {} more", count_ - 8) : "");
  }

 private:
  int count_ = 0;
  std::string text_;
};

void check_order(const Dims& order, Faults* faults) {
  if (order.size() > Layout::kMaxRank) {
    return faults->add("minor_to_major has {} entries; expected at most {}", order.size(), Layout::kMaxRank);
  }
  uint64_t seen = 0;
  for (int64_t i = 0; i < order.size(); ++i) {
    const int64_t dimension = order[i];
    if (dimension < 0 || dimension >= order.size()) {
      faults->add("minor_to_major[{}] is {}; expected each of 0 to {} once", i, dimension, order.size() - 1);
      continue;
    }
    const uint64_t bit = uint64_t{1} << dimension;
    if ((seen & bit) != 0) faults->add("minor_to_major names dimension {} twice; expected a permutation", dimension);
    seen |= bit;
  }
}

void check_tiles(const std::vector<Dims>& tiles, Faults* faults) {
  const auto count = static_cast<int64_t>(tiles.size());
  if (count > Layout::kMaxTiles) {
    return faults->add("tiling has {} tiles; expected at most {}", count, Layout::kMaxTiles);
  }
  for (int64_t t = 0; t < count; ++t) {
    const Dims& tile = tiles[static_cast<size_t>(t)];
    if (tile.size() > Layout::kMaxRank) {
      faults->add("tiling[{}] has {} sizes; expected at most {}", t, tile.size(), Layout::kMaxRank);
      continue;
    }
    for (int64_t i = 0; i < tile.size(); ++i) {
      if (tile[i] < 1 && tile[i] != Layout::kCombine) {
        faults->add("tiling[{}][{}] is {}; expected a size from 1 on, or Layout.COMBINE", t, i, tile[i]);
      }
    }
    if (!tile.empty() && tile.back() == Layout::kCombine) {
      faults->add("tiling[{}] ends in *; expected a size, as * merges a dimension into the next one", t);
    }
  }
}

}  // namespace

Layout::Layout(Dims minor_to_major, std::vector<Dims> tiles, int64_t element_bits, int64_t tail_alignment,
               int64_t memory_space)
    : minor_to_major_(std::move(minor_to_major)),
      tiles_(std::move(tiles)),
      element_bits_(element_bits),
      tail_alignment_(tail_alignment),
      memory_space_(memory_space) {
  Faults faults;
  check_order(minor_to_major_, &faults);
  check_tiles(tiles_, &faults);
  if (element_bits < 0 || element_bits > kMaxElementBits) {
    faults.add("element_size_in_bits is {}; expected 0 to {}", element_bits, kMaxElementBits);
  }
  if (tail_alignment < 1) faults.add("the tail alignment is {}; expected 1 or more", tail_alignment);
  if (memory_space < 0) faults.add("the memory space is {}; expected 0 or more", memory_space);
  faults.refuse();
}

Layout Layout::row_major(int64_t rank) {
  Dims order(rank, 0);
  for (int64_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  return {std::move(order), {}, 0};
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
  return is_strided();
}

Dims Layout::physical_shape(const Dims& shape, std::string_view operation) const {
  if (shape.size() != rank()) {
    throw_error("{}: the layout {} orders {} dimensions and shape {} has {}; expected a layout of its rank", operation,
                to_string(), rank(), artifex_devices::to_string(shape), shape.size());
  }
  Dims physical(rank(), 0);
  for (int64_t i = 0; i < rank(); ++i) physical[i] = shape[minor_to_major_[rank() - 1 - i]];
  checked_product(physical, operation);
  for (const Dims& tile : tiles_) physical = tile_step(physical, tile, operation).result;
  return physical;
}

int64_t Layout::byte_size(const Dims& shape, DType dtype, std::string_view operation) const {
  int64_t elements = checked_product(physical_shape(shape, operation), operation);
  const int64_t whole = itemsize(dtype) * 8;
  const int64_t packed = 8 % value_bits(dtype) == 0 ? value_bits(dtype) : whole;
  const int64_t bits = element_bits_ == 0 ? whole : element_bits_;
  if (bits != whole && bits != packed) {
    throw_error("{}: the layout {} gives each element {} bits; expected {}{} for {}; leave element_size_in_bits 0",
                operation, to_string(), bits, whole, packed < whole ? fmt::format(" or {}", packed) : "", name(dtype));
  }
  if (const int64_t over = elements % tail_alignment_; over != 0) {
    const auto padded = checked_add(elements, tail_alignment_ - over);
    if (!padded) throw_error("{}: the tail of {} is more than fits 63 bits; use a smaller one", operation, to_string());
    elements = *padded;
  }
  const auto all_bits = checked_mul(elements, bits);
  if (!all_bits || *all_bits > std::numeric_limits<int64_t>::max() - 7) {
    throw_error("{}: {} elements of {} bits are more than fit 63 bits; use a smaller shape", operation, elements, bits);
  }
  return (*all_bits + 7) / 8;
}

std::string Layout::to_string() const {
  std::string text = "{";
  append_numbers(&text, minor_to_major_);
  std::string more;
  if (!tiles_.empty()) more += 'T';
  for (const Dims& tile : tiles_) {
    more += '(';
    append_numbers(&more, tile);
    more += ')';
  }
  if (tail_alignment_ != 1) more += fmt::format("L({})", tail_alignment_);
  if (element_bits_ != 0) more += fmt::format("E({})", element_bits_);
  if (memory_space_ != 0) more += fmt::format("S({})", memory_space_);
  if (!more.empty()) text += ':';
  return text + more + '}';
}

size_t Layout::hash() const noexcept {
  size_t seed = hash_value(minor_to_major_);
  for (const Dims& tile : tiles_) seed = hash_mix(seed, hash_value(tile));
  seed = hash_mix(seed, static_cast<size_t>(element_bits_));
  seed = hash_mix(seed, static_cast<size_t>(tail_alignment_));
  return hash_mix(seed, static_cast<size_t>(memory_space_));
}

TileStep tile_step(const Dims& shape, const Dims& tile, std::string_view operation) {
  Dims padded(std::max<int64_t>(0, tile.size() - shape.size()), 1);
  for (const int64_t size : shape) padded.push_back(size);
  const int64_t first = padded.size() - tile.size();
  TileStep step;
  for (int64_t d = 0; d < first; ++d) step.combined.push_back(padded[d]);
  int64_t merged = 1;
  for (int64_t i = 0; i < tile.size(); ++i) {
    const auto product = checked_mul(merged, padded[first + i]);
    if (!product) {
      throw_error("{}: * in a tile merges dimensions of {} to more than fits 63 bits; use smaller ones", operation,
                  artifex_devices::to_string(shape));
    }
    merged = *product;
    if (tile[i] == Layout::kCombine) continue;
    step.combined.push_back(merged);
    step.tile.push_back(tile[i]);
    merged = 1;
  }
  const int64_t whole = step.combined.size() - step.tile.size();
  for (int64_t d = 0; d < step.combined.size(); ++d) {
    if (d < whole) {
      step.result.push_back(step.combined[d]);
    } else {
      const int64_t size = step.tile[d - whole];
      step.result.push_back(step.combined[d] / size + (step.combined[d] % size != 0 ? 1 : 0));
    }
  }
  for (const int64_t size : step.tile) step.result.push_back(size);
  checked_product(step.result, operation);
  return step;
}

int64_t value_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kInt2:
    case DType::kUInt2:
      return 2;
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kFloat4E2M1FN:
      return 4;
    case DType::kFloat6E2M3FN:
    case DType::kFloat6E3M2FN:
      return 6;
    default:
      return itemsize(dtype) * 8;
  }
}

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
