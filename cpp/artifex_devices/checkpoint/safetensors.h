// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/file.h"
#include "artifex_devices/base/index_domain.h"

namespace artifex_devices {

/// The type of a dtype in safetensors files. Types that the format lacks are stored as bytes (int4, other floats of 8
/// bits or less) or as pairs of floats in a further dimension of size 2 (complex numbers).
struct StoredType {
  std::string_view name;  // "F32"
  bool is_pair = false;
};
StoredType stored_type(DType dtype) noexcept;
/// The dtype that `name` stands for without further information; nothing for unknown and packed types.
std::optional<DType> dtype_of_stored(std::string_view name) noexcept;

/// One tensor of a safetensors file: a box of an array.
struct StoredTensor {
  std::string name;
  std::string type;  // as in the file
  Dims shape;
  int64_t begin = 0;  // of its bytes in the file
  int64_t end = 0;
  std::optional<Dims> origin;        // of the box, if the file has it
  std::optional<Dims> global_shape;  // of the array, if the file has it
  std::vector<uint32_t> checksums;   // CRC-32C of each piece of PieceGrid; empty without checksums
};

/// Reads the header of a safetensors file of `file_bytes` bytes from untrusted text, without its 8 bytes of length.
/// Throws InvalidArgument `<what>: ...` for everything that the format forbids: other JSON, duplicate names, sizes that
/// differ from shapes, gaps, overlaps, ranges outside the file. Understands the boxes that torch.distributed.checkpoint
/// writes. Takes memory for the tensors only.
std::vector<StoredTensor> parse_safetensors(std::string_view header, int64_t file_bytes, std::string_view what);

/// Largest header that is read, in bytes.
inline constexpr int64_t kMaxSafetensorsHeader = int64_t{100} << 20;

/// Reads the header of a file. Throws as parse_safetensors and File do.
std::vector<StoredTensor> read_safetensors(const File& file, std::string_view operation);

/// A tensor to be written.
struct NewTensor {
  std::string_view name;
  DType dtype;
  IndexDomain box;
  Dims global_shape;
  int64_t bytes;
  std::span<const uint32_t> checksums;
};

/// The first bytes of a file with these tensors in this order, one after another: length, header, and blanks up to a
/// multiple of 4096 bytes. Its size does not depend on the values of checksums.
std::string format_safetensors(std::span<const NewTensor> tensors);

}  // namespace artifex_devices
