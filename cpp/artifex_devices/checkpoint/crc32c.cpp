// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/crc32c.h"

#include <array>
#include <cstring>

namespace artifex_devices {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

using Table = std::array<uint32_t, 256>;

/// Tables for eight bytes at a time: table k advances a byte by k more zero bytes.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][i] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t i = 0; i < 256; ++i) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
  }
  return tables;
}
constexpr std::array<Table, 8> kTables = make_tables();

#if defined(__x86_64__)
/// Product of two polynomials modulo kPolynomial; bit 31 is the constant.
constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return sum;
}
/// Advances a checksum by 2^n zero bytes: x to the power of 8 * 2^n.
constexpr uint32_t power(int n) {
  uint32_t value = 0x80000000 >> 8;
  for (; n > 0; --n) value = product(value, value);
  return value;
}
constexpr int kLogBlock = 13;
constexpr uint32_t kOneBlock = power(kLogBlock);
constexpr uint32_t kTwoBlocks = power(kLogBlock + 1);

/// Three blocks at a time: an instruction takes three cycles, and one can begin in each.
__attribute__((target("sse4.2"))) uint32_t blocks_by_sse42(const unsigned char*& bytes, size_t& size,
                                                           uint32_t before) noexcept {
  constexpr size_t kBlock = size_t{1} << kLogBlock;
  for (; size >= 3 * kBlock; size -= 3 * kBlock, bytes += 3 * kBlock) {
    uint64_t first = before;
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kBlock; i += 8) {
      const auto word = [&](size_t block) {
        uint64_t value = 0;
        std::memcpy(&value, bytes + block * kBlock + i, 8);
        return value;
      };
      first = __builtin_ia32_crc32di(first, word(0));
      second = __builtin_ia32_crc32di(second, word(1));
      third = __builtin_ia32_crc32di(third, word(2));
    }
    before = product(kTwoBlocks, static_cast<uint32_t>(first)) ^ product(kOneBlock, static_cast<uint32_t>(second)) ^
             static_cast<uint32_t>(third);
  }
  return before;
}

__attribute__((target("sse4.2"))) uint32_t crc32c_by_sse42(const unsigned char* bytes, size_t size,
                                                           uint32_t before) noexcept {
  uint64_t crc = blocks_by_sse42(bytes, size, ~before);
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (; size > 0; --size, ++bytes) rest = __builtin_ia32_crc32qi(rest, *bytes);
  return ~rest;
}
#endif

}  // namespace

uint32_t crc32c_by_table(const void* data, size_t size, uint32_t before) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint32_t crc = ~before;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; --i) word = (word << 8) | bytes[i];
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; size > 0; --size, ++bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFF];
  return ~crc;
}

uint32_t crc32c(const void* data, size_t size, uint32_t before) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_sse42(static_cast<const unsigned char*>(data), size, before);
#endif
  return crc32c_by_table(data, size, before);
}

}  // namespace artifex_devices
