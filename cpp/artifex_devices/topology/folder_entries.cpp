// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/folder_entries.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "artifex_devices/topology/kernel_files.h"

namespace artifex_devices {

std::vector<std::string> folder_entries(const std::string& folder, std::error_code& error, size_t most) {
  struct Close {
    void operator()(DIR* open) const noexcept { closedir(open); }
  };
  error.clear();
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  std::vector<std::string> found;
  if (!open) {
    error.assign(errno, std::generic_category());
    refuse_shortage(error.value(), folder);
    return found;
  }
  while (found.size() < most) {
    errno = 0;
    const dirent* entry = readdir(open.get());
    if (entry == nullptr) {
      if (errno != 0) error.assign(errno, std::generic_category());
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") found.emplace_back(name);
  }
  if (error) found.clear();
  std::ranges::sort(found);
  return found;
}

}  // namespace artifex_devices
