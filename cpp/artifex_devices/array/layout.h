// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// The order of a dense array's dimensions in memory, in XLA's terms. An immutable value.
///
/// `minor_to_major` lists the dimensions, the fastest varying first: {1,0} is row-major for two dimensions, {0,1} is
/// column-major.
class Layout {
 public:
  static constexpr int64_t kMaxRank = 64;  // NumPy's

  Layout() = default;
  /// Throws one InvalidArgument that lists every error if `minor_to_major` is not a permutation of 0 to n - 1.
  explicit Layout(Dims minor_to_major);
  /// {n-1,...,1,0}.
  static Layout row_major(int64_t rank);
  /// Parses the text of to_string, spaces allowed. Throws InvalidArgument for other text, such as XLA's tiles, element
  /// bits and memory spaces.
  static Layout parse(std::string_view text);

  int64_t rank() const noexcept { return minor_to_major_.size(); }
  const Dims& minor_to_major() const noexcept { return minor_to_major_; }
  Dims major_to_minor() const;
  bool is_row_major() const noexcept;

  /// As XLA writes it: "{1,0}".
  std::string to_string() const;
  size_t hash() const noexcept { return hash_value(minor_to_major_); }
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  Dims minor_to_major_;
};

/// Bytes a stride of each dimension of a dense array whose dimensions are so ordered.
/// Example: ({2, 3}, minor_to_major {0, 1}, 4) is {4, 8}.
Dims strides_of_order(const Dims& shape, const Dims& minor_to_major, int64_t itemsize);

}  // namespace artifex_devices
