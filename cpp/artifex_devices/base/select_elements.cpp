// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/select_elements.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/stream_copy.h"

namespace artifex_devices {
namespace {

constexpr int64_t kTileBytes = int64_t{4} << 10;  // three of them stay in the first-level cache

/// An element has kWords words of type W. Always inlined, because code for one instruction set must not be shared.
template <class W, int64_t kWords>
[[gnu::always_inline]] inline void choose(W* __restrict out, const uint8_t* __restrict condition,
                                          const W* __restrict one, const W* __restrict other,
                                          int64_t elements) noexcept {
  for (int64_t i = 0; i < elements; ++i) {
    const W mask = static_cast<W>(W{0} - static_cast<W>(condition[i] != 0));
    for (int64_t w = 0; w < kWords; ++w) {
      const int64_t at = i * kWords + w;
      out[at] = static_cast<W>((one[at] & mask) | (other[at] & static_cast<W>(~mask)));
    }
  }
}

template <class W, int64_t kWords>
[[gnu::always_inline]] inline void select_words(void* out, const uint8_t* condition, SelectOperand one,
                                                SelectOperand other, int64_t elements, bool stream) noexcept {
  constexpr auto kItem = static_cast<int64_t>(sizeof(W)) * kWords;
  constexpr int64_t kTile = kTileBytes / kItem;
  using Tile = std::array<W, static_cast<size_t>(kTile * kWords)>;
  alignas(64) Tile staged;  // NOLINT: written before it is read, like the other two
  alignas(64) Tile ones;
  alignas(64) Tile others;
  const int64_t filled = std::min(kTile, elements);
  const auto fill = [filled](Tile& tile, const SelectOperand& choice) {
    for (int64_t i = 0; choice.is_one && i < filled; ++i) {
      std::memcpy(tile.data() + i * kWords, choice.data, kItem);
    }
  };
  fill(ones, one);
  fill(others, other);
  for (int64_t from = 0; from < elements; from += kTile) {
    const int64_t count = std::min(kTile, elements - from);
    W* const target = static_cast<W*>(out) + from * kWords;
    const W* const a = one.is_one ? ones.data() : static_cast<const W*>(one.data) + from * kWords;
    const W* const b = other.is_one ? others.data() : static_cast<const W*>(other.data) + from * kWords;
    choose<W, kWords>(stream ? staged.data() : target, condition + from, a, b, count);
    if (stream) {
      stream_copy(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(staged.data()),
                  count * kItem);
    }
  }
}

using Loop = void (*)(void*, const uint8_t*, SelectOperand, SelectOperand, int64_t, bool) noexcept;

template <class W, int64_t kWords>
void baseline(void* out, const uint8_t* condition, SelectOperand one, SelectOperand other, int64_t elements,
              bool stream) noexcept {
  select_words<W, kWords>(out, condition, one, other, elements, stream);
}

#if defined(__x86_64__)
template <class W, int64_t kWords>
[[gnu::target("avx2")]] void avx2(void* out, const uint8_t* condition, SelectOperand one, SelectOperand other,
                                  int64_t elements, bool stream) noexcept {
  select_words<W, kWords>(out, condition, one, other, elements, stream);
}
#endif

template <class W, int64_t kWords>
Loop loop() noexcept {
#if defined(__x86_64__)
  if (active_isa() != Isa::kBaseline) return avx2<W, kWords>;
#endif
  return baseline<W, kWords>;
}

Loop loop_of(int64_t itemsize) noexcept {
  switch (itemsize) {
    case 1:
      return loop<uint8_t, 1>();
    case 2:
      return loop<uint16_t, 1>();
    case 4:
      return loop<uint32_t, 1>();
    case 8:
      return loop<uint64_t, 1>();
    case 16:
      return loop<uint64_t, 2>();
    default:
      return nullptr;
  }
}

}  // namespace

bool select_elements(void* out, const uint8_t* condition, SelectOperand one, SelectOperand other, int64_t elements,
                     int64_t itemsize, bool stream) noexcept {
  const Loop run = loop_of(itemsize);
  if (run == nullptr) return false;
  run(out, condition, one, other, elements, stream);
  return true;
}

}  // namespace artifex_devices
