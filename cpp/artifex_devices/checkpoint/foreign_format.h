// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace artifex_devices {

/// Bytes that foreign_format needs of a longer file.
inline constexpr size_t kForeignFormatBytes = 512;

/// Recognizes a file that is not the expected safetensors or JSON file by its first bytes. Returns its format and the
/// fix: "is a Git LFS pointer, not the file that it stands for; ...". Empty for unknown formats.
std::string_view foreign_format(std::string_view head) noexcept;

}  // namespace artifex_devices
