// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/device/cuda/gpus.h"

namespace artifex_devices::cuda {

/// A locked buffer of the host, and what uses it.
struct StagingBuffer {
  static constexpr int64_t kBytes = int64_t{2} << 20;
  std::byte* data = nullptr;
  int64_t used = 0;
  std::vector<std::pair<const Gpu*, Stream>> streams;      // with copies from or to the buffer
  std::vector<std::pair<const Gpu*, EventHandle>> events;  // their ends, recorded when the buffer was full
  std::vector<StridedCopy> unpacks;                        // to run on the host when those have ended
};

/// Two staging buffers of one worker: it fills or empties one while GPUs copy the other. They come from a pool of the
/// process, which grows with the number of workers that copy at the same time.
class StagingBuffers {
 public:
  explicit StagingBuffers(const Driver& driver) : driver_(driver) {}
  StagingBuffers(const StagingBuffers&) = delete;
  StagingBuffers& operator=(const StagingBuffers&) = delete;
  ~StagingBuffers();

  /// `bytes` (at most StagingBuffer::kBytes) of a buffer for a copy on `stream`, at an address that is a multiple of
  /// 64. May wait until the buffer is free. The context of `gpu` must be current.
  std::byte* take(int64_t bytes, const Gpu& gpu, Stream stream);
  /// Runs `copy`, which reads the memory taken last, when the GPU has written it.
  void unpack_later(StridedCopy copy);
  /// Unpacks all buffers. The caller has waited for their copies.
  void finish();

 private:
  /// Records the ends of the copies of a full buffer, before other workers start copies on the same streams.
  void record_ends(StagingBuffer* buffer) const;
  void wait_for(StagingBuffer* buffer) const;
  static void unpack(StagingBuffer* buffer);

  const Driver& driver_;
  std::vector<StagingBuffer*> buffers_;  // the last one is being filled
};

/// Interval at which a waiting thread asks the driver. Each question takes a lock of the driver that other workers
/// need, too.
enum class Poll : uint8_t {
  kOften,  // one thread waits for all copies
  kRarely  // several workers copy
};

/// Waits until all copies on a stream so far have ended.
void wait_for_stream(const Driver& driver, const Gpu& gpu, Stream stream, Poll poll);

}  // namespace artifex_devices::cuda
