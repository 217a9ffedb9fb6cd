// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// CRC-32C (Castagnoli), as in iSCSI, of `size` bytes. `before` is the checksum of the bytes before them.
/// Example: crc32c("123456789", 9) is 0xE3069283.
uint32_t crc32c(const void* data, size_t size, uint32_t before = 0) noexcept;

/// The same without the instructions of the processor. For tests.
uint32_t crc32c_by_table(const void* data, size_t size, uint32_t before = 0) noexcept;

}  // namespace artifex_devices
