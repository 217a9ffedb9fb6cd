// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/efficiency.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace artifex_devices::planner {

namespace {

constexpr std::string_view kTiles = "NVIDIA, Matrix Multiplication Background User's Guide: tile and wave quantization";
constexpr std::string_view kSizes =
    "S12, network chapter: all-reduces of 1 MiB to 16 GiB on 8 A100 and on 8 H200, without their latency";
constexpr std::string_view kNvls = "S12, network chapter: 482e9 of 700e9 bytes/s of bus bandwidth on 8 H200";
constexpr std::string_view kSharp =
    "Graham et al. 2020, doi 10.1007/978-3-030-50743-5_3, abstract: 95 % of the network's bandwidth on HDR InfiniBand";
constexpr std::string_view kHostUpdate =
    "Ren et al. 2021, arXiv:2101.06840, table 4: 10e9 parameters of 28 bytes in 2.57 s on the host of a DGX-2";
constexpr std::string_view kStreamed =
    "pytorch-labs/gpt-fast, README.md: about 1700 GB/s on an A100 limited to 330 W, of the published 2039";
constexpr std::string_view kStreamedOnH100 =
    "ZiyanIshani/vpbenchmarking, README.md: copies at 2903 of 3350 GB/s on an H100";
constexpr std::string_view kFlash2 = "Dao 2023, arXiv:2307.08691, section 4.1";
constexpr std::string_view kFlash3 = "Shah et al. 2024, arXiv:2407.08608, abstract";
constexpr std::string_view kFlash2OnH100 =
    "Shah et al. 2024, arXiv:2407.08608, abstract: 35 % of the peak on an H100, where FlashAttention-3 has 75 %";
constexpr std::string_view kDeepEp =
    "deepseek-ai/DeepEP, docs/legacy.md: 153e9 bytes/s on 8 H800, of the published 200e9 of their links";

/// Published factors of one chip; 0 where nothing is published.
struct ChipFactors {
  std::string_view chip;
  double matmul;
  std::string_view matmul_source;
  double float8;
  std::string_view float8_source;
  double processors;  // streaming multiprocessors, from the vendor's data sheet
  double attention;
  std::string_view attention_source;
};
constexpr std::array<ChipFactors, 7> kChips = {{
    {"A100", 0.859, "S12, MAMF table: 267.9 of 312 TFLOP/s", 0, "", 108, 0.73, kFlash2},
    {"H100", 0.801, "S12, MAMF table: 792.1 of 989 TFLOP/s", 0.647,
     "SemiAnalysis 2024, MI300X vs H100 vs H200, part 1: 1280 of 1979 TFLOP/s", 132, 0.75, kFlash3},
    {"H200", 0.73, "SemiAnalysis 2024, MI300X vs H100 vs H200, part 1: 720 of 989 TFLOP/s", 0.647,
     "SemiAnalysis 2024, MI300X vs H100 vs H200, part 1: 1280 of 1979 TFLOP/s", 132, 0.75, kFlash3},
    {"H800", 0.801, "S12, MAMF table, of the H100: 792.1 of 989 TFLOP/s", 0.647,
     "SemiAnalysis 2024, MI300X vs H100 vs H200, part 1: 1280 of 1979 TFLOP/s", 132, 0.75, kFlash3},
    {"GB200", 0.729, "S12, MAMF table: 1822 of 2500 TFLOP/s", 0, "", 148, 0, ""},
    {"B200", 0.776, "S12, MAMF table: 1745 of 2250 TFLOP/s", 0, "", 148, 0, ""},
    {"MI300X", 0.598, "S12, MAMF table: 781.9 of 1307 TFLOP/s", 0, "", 304, 0, ""},
}};

bool is_fraction(Factor factor) {
  switch (factor) {
    case Factor::kMatmul:
    case Factor::kMatmulFloat8:
    case Factor::kAttentionForward:
    case Factor::kAttentionBackward:
    case Factor::kMemory:
    case Factor::kLinkFraction:
    case Factor::kNvls:
    case Factor::kNetwork:
    case Factor::kHost:
    case Factor::kSharp:
    case Factor::kStream:
    case Factor::kFlash2:
    case Factor::kGrouped:
    case Factor::kDispatch:
      return true;
    default:
      return false;
  }
}

void set(Efficiency& efficiency, Factor factor, double value, std::string_view source) {
  efficiency.factors[static_cast<size_t>(factor)] = {value, std::string(source)};
}

/// Whether a chip has the processors of the H100.
bool is_hopper(std::string_view chip) {
  return chip.find("H100") != std::string_view::npos || chip.find("H200") != std::string_view::npos ||
         chip.find("H800") != std::string_view::npos;
}

Efficiency without_losses(std::string_view source) {
  Efficiency result;
  for (int i = 0; i < kFactorCount; ++i) {
    const auto factor = static_cast<Factor>(i);
    const bool is_tile = factor == Factor::kTileRows || factor == Factor::kTileColumns;
    set(result, factor, is_fraction(factor) || is_tile ? 1 : 0, source);
  }
  return result;
}

bool has_measured_rates(const Cluster& cluster) {
  const auto is_measured = [](const std::optional<SourcedNumber>& rate) { return rate && rate->source == "measured"; };
  return is_measured(cluster.chip().memory_bandwidth) || is_measured(cluster.inside().bandwidth);
}

/// Of rows in tiles of `tile`: the part that is not padding.
double filled(double size, double tile) { return size / (std::ceil(size / tile) * tile); }

double quantised(double m, double n, double products, double rows, double columns, double processors) {
  const double fill = filled(m, rows) * filled(n, columns);
  if (processors <= 0) return fill;
  const double tiles = products * std::ceil(m / rows) * std::ceil(n / columns);
  return fill * tiles / (std::ceil(tiles / processors) * processors);
}

}  // namespace

const Efficiency& ideal_efficiency() {
  static const Efficiency kIdeal = without_losses("model");
  return kIdeal;
}

Efficiency published_efficiency(const Cluster& cluster) {
  if (has_measured_rates(cluster)) return without_losses("the rates are measured");
  Efficiency result = ideal_efficiency();
  const ClusterChip& chip = cluster.chip();
  const auto* const row = std::ranges::find_if(
      kChips, [&](const ChipFactors& each) { return chip.name.find(each.chip) != std::string::npos; });
  const bool is_known = row != kChips.end();
  const bool is_torus = cluster.inside().kind == NetworkKind::kTorus;
  set(result, Factor::kMatmul, is_known ? row->matmul : 0.8, is_known ? row->matmul_source : "model");
  const bool has_float8 = is_known && row->float8 > 0;
  set(result, Factor::kMatmulFloat8, has_float8 ? row->float8 : 0.65, has_float8 ? row->float8_source : "model");
  if (is_known) {
    set(result, Factor::kTileRows, 128, kTiles);
    set(result, Factor::kTileColumns, 256, kTiles);
    set(result, Factor::kProcessors, row->processors, "vendor's data sheet");
  } else if (is_torus) {
    // The matrix unit of a TPU has 128 x 128 elements, of a v6e 256 x 256; a whole array is the smallest tile.
    const double unit =
        chip.name.find("v6e") != std::string::npos || chip.name.find("7x") != std::string::npos ? 256 : 128;
    set(result, Factor::kTileRows, 8, "S5, chapter TPUs: rows are padded to 8");
    set(result, Factor::kTileColumns, unit, "S5, chapter TPUs: size of the matrix unit");
  }
  const bool has_attention = is_known && row->attention > 0;
  const std::string_view attention_source = has_attention ? row->attention_source : "model";
  set(result, Factor::kAttentionForward, has_attention ? row->attention : 0.6, attention_source);
  // FlashAttention-2 reaches 73 % forward and 63 % backward on an A100; other chips get the same ratio.
  set(result, Factor::kAttentionBackward, (has_attention ? row->attention : 0.6) * 63 / 73,
      is_known && row->chip == "A100" ? kFlash2 : "model: 63/73 of the forward pass, as on an A100 (arXiv:2307.08691)");
  set(result, Factor::kMemory, 0.85, "model");
  if (is_torus) {
    // The catalogue's links are what programs get. 560e-6 s of a gather of 34 MB took 680e-6 s in a profile.
    set(result, Factor::kLinkFraction, 1, "S5, chapter Sharding: usable rates");
    set(result, Factor::kLinksHalfBytes, 2e6,
        "S5, chapter Sharding: 95 % of the rate at 10 MB; 34 MB in 680 us, 560 us by the model");
  } else {
    set(result, Factor::kLinkFraction, 0.82, "S8: 370e9 of 450e9 bytes/s for large arrays on 8 H100");
    set(result, Factor::kLinksHalfBytes, 1.4e7, kSizes);
  }
  set(result, Factor::kNvls, 0.69, kNvls);
  set(result, Factor::kNetwork, 0.82, "model: as inside a node [S8]");
  set(result, Factor::kNetworkHalfBytes, 8e6, "model");
  set(result, Factor::kSharp, is_torus ? 1 : 0.95, is_torus ? "model" : kSharp);
  set(result, Factor::kHost, 0.8, "model");
  set(result, Factor::kHostMemory, 1.09e11, kHostUpdate);
  if (chip.name.find("A100") != std::string::npos) {
    set(result, Factor::kStream, 0.834, kStreamed);
  } else if (chip.name.find("H100") != std::string::npos) {
    set(result, Factor::kStream, 0.867, kStreamedOnH100);
  } else if (chip.name.find("H200") != std::string::npos) {
    set(result, Factor::kStream, 0.867, "model: as on an H100 (ZiyanIshani/vpbenchmarking)");
  } else {
    set(result, Factor::kStream, 0.85, "model");
  }
  set(result, Factor::kDispatch, is_torus ? 1 : 0.77, is_torus ? "model" : kDeepEp);
  if (is_hopper(chip.name)) set(result, Factor::kFlash2, 0.467, kFlash2OnH100);
  if (chip.name.find("B200") != std::string::npos) {
    set(result, Factor::kFlash2, 0.467, "model: as on an H100 (arXiv:2407.08608)");
  }
  return result;
}

std::string efficiency_mistakes(const Efficiency& efficiency) {
  std::vector<std::string> wrong;
  for (int i = 0; i < kFactorCount; ++i) {
    const auto factor = static_cast<Factor>(i);
    const double value = efficiency[factor];
    const bool is_tile = factor == Factor::kTileRows || factor == Factor::kTileColumns;
    const std::string_view expected = is_fraction(factor) ? "above 0, at most 1" : is_tile ? "1 or more" : "0 or more";
    const bool is_right = std::isfinite(value) && (is_fraction(factor) ? value > 0 && value <= 1
                                                   : is_tile           ? value >= 1
                                                                       : value >= 0);
    if (!is_right) wrong.push_back(fmt::format("{} is {}, expected a number {}", to_string(factor), value, expected));
  }
  return fmt::format("{}", fmt::join(wrong, "; "));
}

double tile_efficiency(double m, double n, const Efficiency& efficiency, double products) noexcept {
  const double rows = efficiency[Factor::kTileRows];
  const double columns = efficiency[Factor::kTileColumns];
  const double processors = efficiency[Factor::kProcessors];
  if (m < 1 || n < 1) return 1;
  const double whole = quantised(m, n, products, rows, columns, processors);
  if (processors <= 0) return whole;
  return std::max(whole, quantised(m, n, products, rows, std::max(columns / 2, 1.0), processors));
}

double product_seconds(double m, double n, double k, const ProductRates& rates, const Efficiency& efficiency) noexcept {
  const double flops = 2 * m * n * k;
  if (flops <= 0) return 0;
  const double compute = flops / (rates.peak * rates.fraction * tile_efficiency(m, n, efficiency));
  const double bytes = rates.itemsize * (m * k + k * n + m * n);
  return std::max(compute, bytes / (rates.memory_bandwidth * efficiency[Factor::kMemory]));
}

namespace {

constexpr std::array<Factor, 12> kFitted = {
    Factor::kMatmul,      Factor::kMatmulFloat8, Factor::kAttentionForward, Factor::kAttentionBackward,
    Factor::kMemory,      Factor::kLinkFraction, Factor::kNetwork,          Factor::kLayerSeconds,
    Factor::kStepSeconds, Factor::kGrouped,      Factor::kDispatch,         Factor::kExpertSeconds};

/// What fit_training() finds for the runs of a chip that are not held out; -1 where the runs do not depend on it.
/// bench/planner_accuracy.py prints these rows, and a test compares them.
struct FittedChip {
  std::string_view chip;  // part of its name
  int runs;
  std::array<double, kFitted.size()> values;  // of kFitted
};
/// What bench/decode_accuracy.py finds for the decode runs that are not held out, of all GPUs together.
constexpr double kFittedStream = 0.817;
constexpr double kFittedDecodeLayer = 5.88e-05;
constexpr double kFittedDecodeExperts = 3.76e-05;
constexpr int kDecodeRuns = 61;

constexpr std::array<FittedChip, 8> kFittedChips = {{
    {"A100 SXM 40GB", 22, {0.705, -1, 0.334, 0.288, 0.624, -1, -1, 1.69e-06, 0.0106, -1, -1, -1}},
    {"A100 SXM 80GB", 31, {0.732, -1, 0.371, 0.32, 0.924, 1, 1, 0, 0.00927, -1, -1, -1}},
    {"B200", 3, {0.668, 0.493, 0.516, 0.445, 0.865, -1, -1, 4.72e-09, 0, 0.853, -1, 3.2e-06}},
    {"H100", 47, {0.583, 0.668, 0.829, 0.715, 0.374, 0.779, 0.467, 7.93e-06, 0.0508, 0.77, 0.806, 4.56e-05}},
    {"v4", 5, {0.747, -1, 0.644, 0.556, 0.822, -1, -1, 2.12e-07, 0.000361, -1, -1, -1}},
    {"v5e", 16, {0.803, -1, 0.682, 0.589, 1, -1, -1, 3.58e-07, 0, -1, -1, -1}},
    {"v5p", 11, {0.732, -1, 0.452, 0.39, 0.664, -1, -1, 5.71e-07, 0.00571, -1, -1, -1}},
    {"v6e", 2, {0.613, -1, 0.638, 0.551, 0.865, -1, -1, 0, 0, -1, -1, -1}},
}};

}  // namespace

Efficiency default_efficiency(const Cluster& cluster) {
  Efficiency result = published_efficiency(cluster);
  if (has_measured_rates(cluster)) return result;
  if (cluster.inside().kind != NetworkKind::kTorus) {
    const std::string source =
        fmt::format("fit of {} published decode runs on GPUs, docs/planner_accuracy.md", kDecodeRuns);
    set(result, Factor::kStream, kFittedStream, source);
    set(result, Factor::kDecodeLayerSeconds, kFittedDecodeLayer, source);
    set(result, Factor::kDecodeExpertSeconds, kFittedDecodeExperts, source);
  }
  std::string_view name = cluster.chip().name;
  const auto is_chip = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (is_hopper(name)) name = "H100";  // the same processors
  const auto* const row =
      std::ranges::find_if(kFittedChips, [&](const FittedChip& each) { return is_chip(each.chip); });
  if (row == kFittedChips.end()) return result;
  const Efficiency published = result;
  const auto set = [&](Factor factor, double value) {
    result.factors[static_cast<size_t>(factor)] = {
        value, fmt::format("fit of {} published runs on {}, docs/planner_accuracy.md", row->runs, row->chip)};
  };
  for (size_t i = 0; i < kFitted.size(); ++i) {
    if (row->values[i] < 0) continue;
    set(kFitted[i], row->values[i]);
    // The fit scales both alike.
    const double part = row->values[i] / published[kFitted[i]];
    if (kFitted[i] == Factor::kLinkFraction) set(Factor::kNvls, std::min(published[Factor::kNvls] * part, 1.0));
    if (kFitted[i] == Factor::kNetwork) set(Factor::kSharp, std::min(published[Factor::kSharp] * part, 1.0));
  }
  return result;
}

}  // namespace artifex_devices::planner
