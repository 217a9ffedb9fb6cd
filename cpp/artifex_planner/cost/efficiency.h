// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/fields.h"
#include "artifex_planner/kind_names.h"

namespace artifex_devices::planner {

/// Reasons why hardware is slower than its published rates. Each factor is one number; a fraction is between 0 and 1.
enum class Factor : uint8_t {
  kMatmul,               // fraction of the peak that large 16-bit products reach
  kMatmulFloat8,         // the same for 8-bit products
  kTileRows,             // rows of the result that one processor computes at once; 1: no tile quantisation
  kTileColumns,          // columns of it
  kProcessors,           // processors of a device that compute tiles at once; 0: no wave quantisation
  kAttentionForward,     // fraction of the peak that the forward pass of attention reaches
  kAttentionBackward,    // fraction that its backward pass reaches
  kMemory,               // fraction of the memory's bandwidth that element-wise kernels reach
  kLinkFraction,         // fraction of the links' bandwidth inside a slice that large messages reach
  kLinksHalfBytes,       // message of half that rate
  kNvls,                 // fraction of the links' bandwidth that all-reduces reach whose sums the switch computes
  kNetwork,              // fraction of the bandwidth between slices that large messages reach
  kNetworkHalfBytes,     // message of half that rate
  kHost,                 // fraction of the bandwidth between host and chip
  kHostMemory,           // bytes/s of a host's memory that its update of optimizer state reaches; 0: no limit
  kLayerSeconds,         // seconds of launches and gaps for each layer and microbatch, forward or backward
  kStepSeconds,          // seconds of each step for all else: data, logging, stragglers
  kSharp,                // fraction of the bandwidth between slices that all-reduces reach whose sums switches compute
  kStream,               // fraction of the memory's bandwidth at which decoding reads weights and the KV cache
  kDecodeLayerSeconds,   // seconds of each layer of a decoding step in which its kernels start and end
  kDecodeExpertSeconds,  // the same for the additional kernels of a layer with experts
  kFlash2,               // fraction of the rates of attention that FlashAttention-2 reaches on a newer chip
  kGrouped,              // fraction of the rate of products that products of routed experts reach
  kDispatch,             // fraction of the bandwidth of links and network that the exchange of experts' tokens reaches
  kExpertSeconds         // seconds of launches and gaps for routed experts, beside kLayerSeconds
};
inline constexpr int kFactorCount = 25;
template <>
inline constexpr std::array<std::string_view, 25> kKindNames<Factor>{"matmul",
                                                                     "matmul_float8",
                                                                     "tile_rows",
                                                                     "tile_columns",
                                                                     "processors",
                                                                     "attention_forward",
                                                                     "attention_backward",
                                                                     "memory",
                                                                     "links",
                                                                     "links_half_bytes",
                                                                     "nvls",
                                                                     "network",
                                                                     "network_half_bytes",
                                                                     "host",
                                                                     "host_memory",
                                                                     "layer_seconds",
                                                                     "step_seconds",
                                                                     "sharp",
                                                                     "stream",
                                                                     "decode_layer_seconds",
                                                                     "decode_expert_seconds",
                                                                     "flash2",
                                                                     "grouped",
                                                                     "dispatch",
                                                                     "expert_seconds"};

/// Factors with their sources. An immutable value that callers replace in parts.
struct Efficiency {
  std::array<SourcedNumber, kFactorCount> factors;
  double operator[](Factor factor) const noexcept { return factors[static_cast<size_t>(factor)].value; }
};
void visit_fields(FieldsOf<Efficiency> auto& efficiency, const auto& visit) {
  for (size_t i = 0; i < efficiency.factors.size(); ++i) visit(kKindNames<Factor>[i].data(), efficiency.factors[i]);
}

/// The factor of products in a format; 4-bit ones count as 8-bit ones.
constexpr Factor matmul_factor(MatmulFormat format) noexcept {
  const bool has_few_bits = format == MatmulFormat::kFloat8 || format == MatmulFormat::kInt8 ||
                            format == MatmulFormat::kFloat4 || format == MatmulFormat::kInt4;
  return has_few_bits ? Factor::kMatmulFloat8 : Factor::kMatmul;
}

/// No losses: fractions of 1, no quantisation, no fixed seconds. Prices with it are bounds at published rates.
const Efficiency& ideal_efficiency();

/// The published factors of a cluster's chip, or "model" where nothing is published. Rates that were measured need no
/// factors: they are ideal.
/// Example: an H100 has kMatmul 0.801, as 792.1 of 989 TFLOP/s were measured [S12].
Efficiency published_efficiency(const Cluster& cluster);

/// The published factors, replaced where fit_training() found others for the chip from published training runs
/// (bench/published_runs.json): kernels of whole steps are slower than the best ones alone.
Efficiency default_efficiency(const Cluster& cluster);

/// Everything that is wrong with the factors: fractions outside (0, 1], tiles below 1, seconds below 0. Empty if
/// nothing.
std::string efficiency_mistakes(const Efficiency& efficiency);

/// The part of a device's work on an m x n result that is not padding: whole tiles, and whole waves of them over the
/// processors. The better of the tile and half of it counts. Example: 1024 x 1024 on 132 processors with 128 x 256
/// tiles has 32 tiles and would use 32 of 132 processors; with 128 x 128 ones 64 of 132, so 0.485. The tiles of
/// `products` equal products share the waves.
double tile_efficiency(double m, double n, const Efficiency& efficiency, double products = 1) noexcept;

/// Seconds of an m x k by k x n product: FLOPs at the reached rate, or bytes of operands and result at the memory's.
struct ProductRates {
  double peak = 0;              // FLOP/s
  double memory_bandwidth = 0;  // bytes/s
  double fraction = 1;          // of the peak that large products reach
  double itemsize = 2;
};
double product_seconds(double m, double n, double k, const ProductRates& rates, const Efficiency& efficiency) noexcept;

/// The fraction of a bandwidth that a message of `bytes` bytes reaches: full x bytes / (bytes + lost), where lost =
/// half x sqrt(2 bytes / (bytes + half)). Messages of `half` bytes lose half of the rate. Smaller ones lose fewer
/// bytes, because libraries send them in fewer and smaller chunks: 8 A100 and 8 H200 from 1 MiB to 16 GiB [S12] have
/// this form.
inline double message_efficiency(double bytes, double full, double half) noexcept {
  if (bytes <= 0 || half <= 0) return full;
  return full * bytes / (bytes + half * std::sqrt(2 * bytes / (bytes + half)));
}

}  // namespace artifex_devices::planner
