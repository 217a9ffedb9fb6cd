// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

namespace artifex_devices {

/// Returns the sorted names in a folder without "." and "..", at most the first `most` that the system lists. If the
/// folder cannot be read, returns none and sets `error`; throws where refuse_shortage does. Replaces
/// std::filesystem::directory_iterator, which in libstdc++ 12 terminates the process when memory runs out.
std::vector<std::string> folder_entries(const std::string& folder, std::error_code& error, size_t most = 65536);

}  // namespace artifex_devices
