// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

namespace artifex_devices {

/// The names in a folder but for "." and "..", sorted; at most `most` of those that the system tells first. None where
/// it cannot be read, and then `error` says why. Instead of std::filesystem::directory_iterator, which in libstdc++ 12
/// ends the process where memory is short.
std::vector<std::string> folder_entries(const std::string& folder, std::error_code& error, size_t most = 65536);

}  // namespace artifex_devices
