// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace artifex_devices {

/// Bytes that foreign_format needs of a longer file.
inline constexpr size_t kForeignFormatBytes = 512;

/// What a file is that was given in place of a safetensors or JSON file, by its first bytes, and what to do:
/// "is a Git LFS pointer, not the file that it stands for; ...". Empty for formats that are not known here.
std::string_view foreign_format(std::string_view head) noexcept;

}  // namespace artifex_devices
