// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace artifex_devices {

/// Loops over long arrays of doubles, as in McCalpin's STREAM: c = a and c = a + s b, each with plain stores and with
/// stores that bypass the cache and therefore do not read c first.
enum class StreamKernel : uint8_t { kCopy, kCopyStreaming, kTriad, kTriadStreaming };
inline constexpr std::array kStreamKernels = {StreamKernel::kCopy, StreamKernel::kCopyStreaming, StreamKernel::kTriad,
                                              StreamKernel::kTriadStreaming};

std::string_view to_string(StreamKernel kernel) noexcept;  // "copy", "copy, streaming stores", "triad", ...

/// Returns whether this processor has stores that bypass the cache; otherwise kernels with them must not be run.
bool has_streaming_stores() noexcept;

/// Bytes that STREAM counts for one element: 16 for a copy, 24 for a triad.
constexpr int64_t stream_bytes_per_element(StreamKernel kernel) noexcept {
  return kernel == StreamKernel::kCopy || kernel == StreamKernel::kCopyStreaming ? 16 : 24;
}

/// Runs the loop over `count` elements with s = 3. Pointers are aligned to cache lines, `count` is a multiple of 8.
void run_stream(StreamKernel kernel, const double* a, const double* b, double* c, int64_t count) noexcept;

}  // namespace artifex_devices
