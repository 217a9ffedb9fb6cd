// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/streamed_file.h"

#include <algorithm>

#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/crc32c.h"

namespace artifex_devices {

void StreamedFile::write(const std::byte* data, int64_t bytes) {
  const int64_t begin = bytes_;
  for (int64_t done = 0; done < bytes; done += kCheckpointPieceBytes) {  // which stay in a cache between both calls
    const int64_t size = std::min(kCheckpointPieceBytes, bytes - done);
    checksum_ = crc32c(data + done, static_cast<size_t>(size), checksum_);
    file_.write(data + done, size, bytes_);
    bytes_ += size;
  }
  if (bytes >= kCheckpointPieceBytes) file_.start_sync(begin, bytes);
}

void StreamedFile::finish(std::string_view head) {
  if (!head.empty()) file_.write(head.data(), static_cast<int64_t>(head.size()), 0);
  file_.sync();
}

}  // namespace artifex_devices
