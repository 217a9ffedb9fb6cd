// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// The order of a dense array's elements in memory, in XLA's terms. An immutable value.
///
/// `minor_to_major` lists the dimensions, the fastest varying first: {1,0} is row-major for two dimensions, {0,1} is
/// column-major. Tiles then divide the physical (major to minor) order: a tile of k sizes covers the k most minor
/// dimensions, which become numbers of tiles, followed by the tile itself; the unused rest of a dimension's last tile
/// is padding. Each further tile divides the result of the previous one. `kCombine` ("*") in a tile first merges that
/// dimension into the next more minor one. A tile longer than the shape sees leading dimensions of size one.
///
/// Example: shape (3, 5) with {1,0:T(2,2)} is stored as the row-major array (2, 3, 2, 2); element (2, 3) is at (1, 1,
/// 0, 1), number 17 of 24.
class Layout {
 public:
  static constexpr int64_t kCombine = std::numeric_limits<int64_t>::min();
  // Limits of a text or a caller; the cost of all functions is linear in them.
  static constexpr int64_t kMaxRank = 64;  // NumPy's
  static constexpr int64_t kMaxTiles = 16;
  static constexpr int64_t kMaxElementBits = 128;
  static constexpr int64_t kMaxText = 16 << 10;

  Layout() = default;
  /// Throws one InvalidArgument that lists every error: `minor_to_major` is not a permutation of 0 to n - 1, a tile has
  /// a size below 1 or ends in kCombine, a number is out of range. `element_bits` 0 means the size of the dtype.
  /// `tail_alignment`: the number of elements of the array is padded to a multiple of it.
  Layout(Dims minor_to_major, std::vector<Dims> tiles, int64_t element_bits, int64_t tail_alignment = 1,
         int64_t memory_space = 0);
  /// {n-1,...,1,0}.
  static Layout row_major(int64_t rank);
  /// Parses the text of to_string and XLA for dense layouts, spaces allowed: `{1,0:T(8,128)(2,1)L(4)E(4)S(1)}`, parts
  /// in this order. Throws InvalidArgument with the position of the first invalid or unknown part.
  static Layout parse(std::string_view text);

  int64_t rank() const noexcept { return minor_to_major_.size(); }
  const Dims& minor_to_major() const noexcept { return minor_to_major_; }
  Dims major_to_minor() const;
  const std::vector<Dims>& tiles() const noexcept { return tiles_; }
  int64_t element_bits() const noexcept { return element_bits_; }
  int64_t tail_alignment() const noexcept { return tail_alignment_; }
  int64_t memory_space() const noexcept { return memory_space_; }

  /// Without tiles, element bits and tail: each element is found by one stride for each dimension.
  bool is_strided() const noexcept { return tiles_.empty() && element_bits_ == 0 && tail_alignment_ == 1; }
  bool is_row_major() const noexcept;

  /// The shape of the row-major array in memory, major to minor, padding included. Throws InvalidArgument for a shape
  /// of another rank, and where the number of elements does not fit 63 bits.
  Dims physical_shape(const Dims& shape, std::string_view operation) const;
  /// The bytes of an array in memory. Throws as physical_shape, and for element bits that are neither the
  /// dtype's bytes nor, for dtypes of 1, 2 or 4 bits, these.
  int64_t byte_size(const Dims& shape, DType dtype, std::string_view operation) const;

  /// As XLA writes it: "{1,0:T(8,128)E(4)}".
  std::string to_string() const;
  size_t hash() const noexcept;
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  Dims minor_to_major_;
  std::vector<Dims> tiles_;
  int64_t element_bits_ = 0;
  int64_t tail_alignment_ = 1;
  int64_t memory_space_ = 0;
};

/// One tile over a row-major array: `combined` is its shape once `*` is taken out (with leading ones for a longer
/// tile), `tile` the tile without `*`, `result` what memory then is.
struct TileStep {
  Dims combined;
  Dims tile;
  Dims result;
};
/// Throws InvalidArgument where a product does not fit 63 bits.
TileStep tile_step(const Dims& shape, const Dims& tile, std::string_view operation);

/// The bits that a value needs: 4 of int4, which takes a byte in NumPy; 1 of bool.
int64_t value_bits(DType dtype) noexcept;

/// Bytes a stride of each dimension of a dense array whose dimensions are so ordered.
/// Example: ({2, 3}, minor_to_major {0, 1}, 4) is {4, 8}.
Dims strides_of_order(const Dims& shape, const Dims& minor_to_major, int64_t itemsize);

}  // namespace artifex_devices
