// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <memory>
#include <vector>

#include "artifex_devices/collective/shared_channels.h"

namespace artifex_devices {

/// The ends of all peers, as if each were a process.
inline std::vector<std::unique_ptr<SharedChannels>> ends(int64_t count) {
  std::vector<int> files;
  for (int64_t i = 0; i < count; ++i) files.push_back(SharedChannels::create(count));
  std::vector<std::unique_ptr<SharedChannels>> made;
  for (int64_t i = 0; i < count; ++i) made.push_back(std::make_unique<SharedChannels>(i, files));
  for (const int file : files) close(file);
  return made;
}

}  // namespace artifex_devices
