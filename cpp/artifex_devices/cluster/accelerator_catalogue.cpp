// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/accelerator_catalogue.h"

#include <algorithm>
#include <string>
#include <vector>

#include "artifex_devices/cluster/device_words.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, kMatmulFormatCount> kFormats = {
    "bfloat16", "float16", "float32", "tensorfloat32", "int8", "float8", "int4", "float4"};

constexpr std::array kSources = {
    CatalogueSource{"S1", "Google Cloud, \"TPU v4\"", "https://docs.cloud.google.com/tpu/docs/v4"},
    CatalogueSource{"S2", "Google Cloud, \"TPU v5e\"", "https://docs.cloud.google.com/tpu/docs/v5e"},
    CatalogueSource{"S3", "Google Cloud, \"TPU v5p\"", "https://docs.cloud.google.com/tpu/docs/v5p"},
    CatalogueSource{"S4", "Google Cloud, \"TPU v6e\"", "https://docs.cloud.google.com/tpu/docs/v6e"},
    CatalogueSource{"S5", "\"How to Scale Your Model\", chapters Rooflines, TPUs and Sharding",
                    "https://jax-ml.github.io/scaling-book"},
    CatalogueSource{"S6", "Google Cloud, \"TPU7x (Ironwood)\"", "https://docs.cloud.google.com/tpu/docs/tpu7x"},
    CatalogueSource{"S7", "JAX, jax/_src/tpu_info.py, development version of 2026-08-08",
                    "https://github.com/jax-ml/jax"},
    CatalogueSource{"S8", "\"How to Scale Your Model\", chapter 12", "https://jax-ml.github.io/scaling-book/gpus"},
    CatalogueSource{"S9", "Table of the Tesla V100, after NVIDIA's Volta white paper",
                    "https://maosong.website/p/nvidia-gpu-specs"},
    CatalogueSource{"S10", "Glenn Lockwood's pages on A100 and H100, citing NVIDIA's data sheets",
                    "https://glennklockwood.com/garden/processors/h100"},
    CatalogueSource{"S11", "Glenn Lockwood's page on B200, citing NVIDIA's Blackwell brief",
                    "https://glennklockwood.com/garden/processors/B200"},
    CatalogueSource{"S12", "\"Machine Learning Engineering\", chapters Accelerators and Network",
                    "https://github.com/stas00/ml-engineering"},
    CatalogueSource{"S13", "MLCommons inference v4.1, system description of NVIDIA H200", ""},
    CatalogueSource{"S14", "\"Hardware assumptions\" of the distributed training book",
                    "https://ttsugriy.github.io/distributed-training-book"},
    CatalogueSource{"S15", "MLCommons inference v4.1, system description of 8 AMD MI300X", ""},
    CatalogueSource{"S18", "JAX, jax/_src/hardware_utils.py, development version of 2026-08-08",
                    "https://github.com/jax-ml/jax"},
    CatalogueSource{"S19", "pci.ids of 2026-08-22", "https://pci-ids.ucw.cz"},
    CatalogueSource{"S22", "NVIDIA/nccl, src/graph/tuning.cc (an older version)", "https://github.com/NVIDIA/nccl"},
    CatalogueSource{"S23", "Zhao et al. 2025, Insights into DeepSeek-V3, section 4.1",
                    "https://arxiv.org/abs/2505.09343"},
    CatalogueSource{"S24", "MLCommons training v0.7, NVIDIA's system descriptions of a DGX-2 and a DGX A100 (40 GB)",
                    "https://github.com/mlcommons/training_results_v0.7"},
    CatalogueSource{"S25", "MLCommons training v1.0, NVIDIA's system description of a DGX A100 (80 GB)",
                    "https://github.com/mlcommons/training_results_v1.0"},
    CatalogueSource{"S26", "MLCommons inference v4.1, NVIDIA's system description of a DGX H100",
                    "https://github.com/mlcommons/inference_results_v4.1"},
};

constexpr int64_t kGiB = int64_t{1} << 30;

/// Peaks by format, named where they are written.
struct Peaks {
  std::optional<double> bf16{}, fp16{}, fp32{}, tf32{}, int8{}, fp8{}, int4{}, fp4{};
  constexpr operator std::array<std::optional<double>, kMatmulFormatCount>() const {  // NOLINT: meant to convert
    return {bf16, fp16, fp32, tf32, int8, fp8, int4, fp4};
  }
};

constexpr CatalogueLinks ici(int dims, double one_way, double nominal, std::array<int, 3> pod, std::string_view wrap) {
  return {.kind = "ICI",
          .links = 2 * dims,
          .torus_dims = dims,
          .one_way = one_way,
          .nominal_one_way = nominal,
          .pod = pod,
          .wrap = wrap};
}

constexpr CatalogueLinks switched(std::string_view kind, int links, double one_way, std::optional<int> domain,
                                  std::optional<int> switches, std::string_view domain_note = "") {
  return {.kind = kind,
          .links = links,
          .one_way = one_way,
          .domain_chips = domain,
          .domain_note = domain_note,
          .switches = switches};
}

constexpr std::string_view kOneTensorCore = "JAX's table is of one TensorCore: half of a chip with two";
constexpr std::string_view kNetworkOfA100 =
    "the network (8 x 200 Gb/s a host) is NVIDIA's reference design and not checked";

constexpr std::array kCatalogue = {
    Accelerator{.name = "TPU v4",
                .hardware_type = "tpu_v4",
                .is_the_types_own = true,
                .platform = "tpu",
                .device_kinds = {"TPU v4"},
                .pci_ids = {"1ae0:005e"},
                .peak_flops = Peaks{.bf16 = 2.75e14, .int8 = 2.75e14},
                .memory_bytes = 32 * kGiB,
                .memory_bandwidth = 1.2e12,
                .cores_per_chip = 2,
                .devices_per_chip = 1,
                .links = ici(3, 4.5e10, 5e10, {16, 16, 16}, "cube4"),
                .chips_per_host = 4,
                .host_shape = {2, 2, 1},
                .pcie_one_way = 1.6e10,
                .network_per_chip = 6.25e9,
                .sources = {"S1", "S5", "S7"},
                .link_sources = {"S1", "S5"},
                .pci_source = "S18",
                .note = "bandwidth: 1.2e12 B/s, elsewhere 1.23e12"},
    Accelerator{.name = "TPU v5e",
                .hardware_type = "tpu_v5e",
                .is_the_types_own = true,
                .platform = "tpu",
                .device_kinds = {"TPU v5 lite", "TPU v5e"},
                .pci_ids = {"1ae0:0063"},
                .peak_flops = Peaks{.bf16 = 1.97e14, .int8 = 3.94e14, .int4 = 7.88e14},
                .memory_bytes = 16 * kGiB,
                .memory_bandwidth = 8.19e11,
                .cores_per_chip = 1,
                .devices_per_chip = 1,
                .links = ici(2, 4.5e10, 5e10, {16, 16, 0}, "axis16"),
                .chips_per_host = 8,
                .host_shape = {4, 2, 0},
                .pcie_one_way = 1.6e10,
                .network_per_chip = 3.125e9,
                .sources = {"S2", "S5", "S7"},
                .link_sources = {"S2", "S5"},
                .pci_source = "S18",
                .note = "bandwidth: 819 GB/s or 800 GiB/s (8.59e11 B/s) by version of Google's page, 8.2e11 in JAX, "
                        "8.1e11 in the book"},
    Accelerator{
        .name = "TPU v5p",
        .hardware_type = "tpu_v5p",
        .is_the_types_own = true,
        .platform = "tpu",
        .device_kinds = {"TPU v5", "TPU v5p"},
        .pci_ids = {"1ae0:0062"},
        .peak_flops = Peaks{.bf16 = 4.59e14, .int8 = 9.18e14, .int4 = 1.84e15},
        .memory_bytes = 95 * kGiB,
        .memory_bandwidth = 2.765e12,
        .cores_per_chip = 2,
        .devices_per_chip = 1,
        .links = ici(3, 9e10, 1e11, {16, 20, 28}, "cube4"),
        .chips_per_host = 4,
        .host_shape = {2, 2, 1},
        .pcie_one_way = 1.6e10,
        .network_per_chip = 6.25e9,
        .sources = {"S3", "S5", "S7"},
        .link_sources = {"S3", "S5"},
        .pci_source = "S18",
        .note = "bandwidth: 2765 GB/s by Google's page, 2.46e12 B/s in JAX's table; the largest job is 16x16x24"},
    Accelerator{.name = "TPU v6e (Trillium)",
                .platform = "tpu",
                .device_kinds = {"TPU v6 lite", "TPU v6e"},
                .pci_ids = {"1ae0:006f"},
                .peak_flops = Peaks{.bf16 = 9.18e14, .int8 = 1.836e15, .fp8 = 9.18e14, .int4 = 3.68e15},
                .memory_bytes = 32 * kGiB,
                .memory_bandwidth = 1.638e12,
                .cores_per_chip = 1,
                .devices_per_chip = 1,
                .links = ici(2, 9e10, 1e11, {16, 16, 0}, "axis16"),
                .chips_per_host = 8,
                .host_shape = {4, 2, 0},
                .pcie_one_way = 3.2e10,
                .network_per_chip = 1.25e10,
                .sources = {"S4", "S5", "S7"},
                .link_sources = {"S4", "S5"},
                .pci_source = "S18"},
    Accelerator{.name = "TPU7x (Ironwood)",
                .platform = "tpu",
                .device_kinds = {"TPU7x", "TPU7"},
                .pci_ids = {"1ae0:0076"},
                .peak_flops = Peaks{.bf16 = 2.307e15, .fp8 = 4.614e15},
                .memory_bytes = 192 * kGiB,
                .memory_bandwidth = 7.38e12,
                .cores_per_chip = 2,
                .devices_per_chip = 2,
                .links = {.kind = "ICI",
                          .links = 6,
                          .torus_dims = 3,
                          .nominal_one_way = 1e11,
                          .pod_note = "9216 chips, 3-D torus",
                          .wrap = "cube4",
                          .wrap_note = "assumed, as v4/v5p"},
                .chips_per_host = 4,
                .network_per_chip = 1.25e10,
                .sources = {"S6", "S7"},
                .link_sources = {"S6"},
                .pci_source = "S18",
                .note = kOneTensorCore},
    Accelerator{.name = "TPU8i",
                .platform = "tpu",
                .device_kinds = {"TPU8i"},
                .pci_ids = {"1ae0:0083"},
                .peak_flops = Peaks{.bf16 = 1.101e15, .fp8 = 8.808e15},
                .memory_bytes = 309'000'000'000,
                .memory_bandwidth = 8.6e12,
                .sources = {"S7"},
                .pci_source = "S18",
                .note = "known from JAX's table only"},
    Accelerator{.name = "TPU8t",
                .platform = "tpu",
                .device_kinds = {"TPU8t"},
                .pci_ids = {"1ae0:007c"},
                .peak_flops = Peaks{.bf16 = 9.961e14, .fp8 = 5.977e15},
                .memory_bytes = 231'000'000'000,
                .memory_bandwidth = 6.4e12,
                .sources = {"S7"},
                .pci_source = "S18",
                .note = "known from JAX's table only"},
    Accelerator{.name = "NVIDIA V100 SXM2 16GB",
                .hardware_type = "v100",
                .is_the_types_own = true,
                .platform = "gpu",
                .device_kinds = {"Tesla V100-SXM2-16GB"},
                .pci_ids = {"10de:1db1"},
                .peak_flops = Peaks{.fp16 = 1.25e14, .fp32 = 1.57e13},
                .memory_bytes = 16 * kGiB,
                .memory_bandwidth = 9e11,
                .links = switched("NVLink 2", 6, 2.5e10, std::nullopt, std::nullopt,
                                  "DGX-2: 16 (12 NVSwitch); DGX-1: 8 (hybrid cube mesh, no switch)"),
                .chips_per_host = 8,
                .pcie_one_way = 1.6e10,
                .sources = {"S8", "S9", "S12"},
                .link_sources = {"S8"},
                .pci_source = "S19"},
    Accelerator{.name = "NVIDIA V100 SXM2/SXM3 32GB",
                .hardware_type = "v100",
                .platform = "gpu",
                .device_kinds = {"Tesla V100-SXM2-32GB", "Tesla V100-SXM3-32GB", "Tesla V100-SXM3-32GB-H",
                                 "Tesla V100-PCIE-32GB"},
                .pci_ids = {"10de:1db5", "10de:1db8", "10de:1db6"},
                .peak_flops = Peaks{.fp16 = 1.25e14, .fp32 = 1.57e13},
                .memory_bytes = 32 * kGiB,
                .memory_bandwidth = 9e11,
                .links = switched("NVLink 2", 6, 2.5e10, std::nullopt, std::nullopt, "DGX-2: 16"),
                .chips_per_host = 16,
                .pcie_one_way = 1.6e10,
                .sources = {"S8", "S9", "S12"},
                .link_sources = {"S8"},
                .pci_source = "S19",
                .note = "numbers of the SXM modules; the PCIe card, listed here too, is slower and has no NVLink "
                        "between all GPUs"},
    Accelerator{
        .name = "NVIDIA A100 SXM 40GB",
        .hardware_type = "a100",
        .platform = "gpu",
        .device_kinds = {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"},
        .pci_ids = {"10de:20b0"},
        .peak_flops = Peaks{.bf16 = 3.12e14, .fp16 = 3.12e14, .fp32 = 1.95e13, .tf32 = 1.56e14, .int8 = 6.24e14},
        .memory_bytes = 40 * kGiB,
        .memory_bandwidth = 1.555e12,
        .links = switched("NVLink 3", 12, 2.5e10, 8, 6),
        .chips_per_host = 8,
        .pcie_one_way = 3.2e10,
        .network_per_chip = 2.5e10,
        .sources = {"S8", "S10", "S12"},
        .link_sources = {"S8"},
        .pci_source = "S19",
        .note = kNetworkOfA100},
    Accelerator{
        .name = "NVIDIA A100 SXM 80GB",
        .hardware_type = "a100",
        .is_the_types_own = true,
        .platform = "gpu",
        .device_kinds = {"NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"},
        .pci_ids = {"10de:20b2"},
        .peak_flops = Peaks{.bf16 = 3.12e14, .fp16 = 3.12e14, .fp32 = 1.95e13, .tf32 = 1.56e14, .int8 = 6.24e14},
        .memory_bytes = 80 * kGiB,
        .memory_bandwidth = 2.039e12,
        .links = switched("NVLink 3", 12, 2.5e10, 8, 6),
        .chips_per_host = 8,
        .pcie_one_way = 3.2e10,
        .network_per_chip = 2.5e10,
        .sources = {"S8", "S10", "S12"},
        .link_sources = {"S8"},
        .pci_source = "S19",
        .note = kNetworkOfA100},
    Accelerator{.name = "NVIDIA H100 SXM",
                .hardware_type = "h100",
                .is_the_types_own = true,
                .platform = "gpu",
                .device_kinds = {"NVIDIA H100 80GB HBM3"},
                .pci_ids = {"10de:2330"},
                .peak_flops = Peaks{.bf16 = 9.89e14,
                                    .fp16 = 9.89e14,
                                    .fp32 = 6.69e13,
                                    .tf32 = 4.947e14,
                                    .int8 = 1.979e15,
                                    .fp8 = 1.979e15},
                .memory_bytes = 80 * kGiB,
                .memory_bandwidth = 3.35e12,
                .links = switched("NVLink 4", 18, 2.5e10, 8, 4),
                .chips_per_host = 8,
                .pcie_one_way = 6.4e10,
                .network_per_chip = 5e10,
                .sources = {"S8", "S10", "S12"},
                .link_sources = {"S8"},
                .pci_source = "S19",
                .note = "the book rounds 9.89e14 to 1e15, which makes 298 of a critical batch of 295"},
    Accelerator{.name = "NVIDIA H800 SXM",
                .platform = "gpu",
                .device_kinds = {"NVIDIA H800"},
                .pci_ids = {"10de:2324"},
                .peak_flops = Peaks{.bf16 = 9.89e14,
                                    .fp16 = 9.89e14,
                                    .fp32 = 6.69e13,
                                    .tf32 = 4.947e14,
                                    .int8 = 1.979e15,
                                    .fp8 = 1.979e15},
                .memory_bytes = 80 * kGiB,
                .memory_bandwidth = 3.35e12,
                .links = switched("NVLink 4", 8, 2.5e10, 8, 4),
                .chips_per_host = 8,
                .pcie_one_way = 6.4e10,
                .network_per_chip = 5e10,
                .sources = {"S8", "S10", "S23"},
                .link_sources = {"S23"},
                .pci_source = "S19",
                .note = "an H100 with 400 of its 900 GB/s of NVLink; FLOP/s and memory are the same as the H100's"},
    Accelerator{.name = "NVIDIA H200 SXM",
                .platform = "gpu",
                .device_kinds = {"NVIDIA H200"},
                .pci_ids = {"10de:2335"},
                .peak_flops = Peaks{.bf16 = 9.89e14,
                                    .fp16 = 9.89e14,
                                    .fp32 = 6.69e13,
                                    .tf32 = 4.947e14,
                                    .int8 = 1.979e15,
                                    .fp8 = 1.979e15},
                .memory_bytes = 141 * kGiB,  // "141 GB" is in GiB, like the 80 GB of the H100
                .memory_bandwidth = 4.8e12,
                .links = switched("NVLink 4", 18, 2.5e10, 8, 4),
                .chips_per_host = 8,
                .pcie_one_way = 6.4e10,
                .network_per_chip = 5e10,
                .sources = {"S8", "S10", "S13"},
                .link_sources = {"S8"},
                .pci_source = "S19"},
    Accelerator{.name = "NVIDIA B200 (HGX, 1000 W)",
                .platform = "gpu",
                .device_kinds = {"NVIDIA B200"},
                .pci_ids = {"10de:2901"},
                .peak_flops = Peaks{.bf16 = 2.25e15,
                                    .fp16 = 2.25e15,
                                    .fp32 = 8e13,
                                    .tf32 = 1.1e15,
                                    .int8 = 4.5e15,
                                    .fp8 = 4.5e15,
                                    .fp4 = 9e15},
                .memory_bytes = 192'000'000'000,
                .memory_bandwidth = 8e12,
                .links = switched("NVLink 5", 18, 5e10, 8, 2),
                .chips_per_host = 8,
                .pcie_one_way = 6.4e10,
                .network_per_chip = 5e10,
                .sources = {"S8", "S11"},
                .link_sources = {"S8"},
                .pci_source = "S19"},
    Accelerator{.name = "NVIDIA GB200 NVL72 (per GPU)",
                .platform = "gpu",
                .device_kinds = {"NVIDIA GB200"},
                .pci_ids = {"10de:2941"},
                .peak_flops = Peaks{.bf16 = 2.5e15,
                                    .fp16 = 2.5e15,
                                    .fp32 = 9e13,
                                    .tf32 = 1.25e15,
                                    .int8 = 5e15,
                                    .fp8 = 5e15,
                                    .fp4 = 1e16},
                .memory_bytes = 192'000'000'000,
                .memory_bandwidth = 8e12,
                .links = switched("NVLink 5", 18, 5e10, 72, 18),
                .network_per_chip = 5e10,
                .sources = {"S8", "S11"},
                .link_sources = {"S8"},
                .pci_source = "S19"},
    Accelerator{.name = "AMD MI300X",
                .platform = "gpu",
                .device_kinds = {"AMD Instinct MI300X", "gfx942"},
                .pci_ids = {"1002:74a1"},
                .peak_flops = Peaks{.bf16 = 1.307e15,
                                    .fp16 = 1.307e15,
                                    .fp32 = 1.634e14,
                                    .tf32 = 6.537e14,
                                    .int8 = 2.6e15,
                                    .fp8 = 2.615e15},
                .memory_bytes = 192 * kGiB,
                .memory_bandwidth = 5.3e12,
                .links = switched("Infinity Fabric (xGMI), full mesh", 7, 6.4e10, 8, 0),
                .chips_per_host = 8,
                .pcie_one_way = 6.4e10,
                .network_per_chip = 5e10,
                .sources = {"S12", "S14", "S15"},
                .link_sources = {"S12"},
                .pci_source = "S19",
                .note = "gfx942 alone may also be an MI300A or MI325X; the network (8 x 400 Gb/s a host) is typical "
                        "and not checked"},
};

bool equal_without_case(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

template <class F>
const Accelerator* find_row(F&& is_it) {
  const auto* found = std::ranges::find_if(kCatalogue, is_it);
  return found == kCatalogue.end() ? nullptr : found;
}

}  // namespace

std::string_view to_string(MatmulFormat format) noexcept {
  const auto index = static_cast<size_t>(format);
  return index < kFormats.size() ? kFormats[index] : std::string_view("unknown");
}

std::optional<MatmulFormat> matmul_format_from_name(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kFormats, name);
  if (found == kFormats.end()) return std::nullopt;
  return static_cast<MatmulFormat>(found - kFormats.begin());
}

std::span<const Accelerator> accelerator_catalogue() noexcept { return kCatalogue; }

std::span<const CatalogueSource> catalogue_sources() noexcept { return kSources; }

const CatalogueSource* find_catalogue_source(std::string_view id) noexcept {
  const auto* found = std::ranges::find(kSources, id, &CatalogueSource::id);
  return found == kSources.end() ? nullptr : found;
}

const Accelerator* find_accelerator_by_name(std::string_view name) {
  return find_row([&](const Accelerator& row) { return equal_without_case(row.name, name); });
}

const Accelerator* find_accelerator_by_kind(std::string_view device_kind) {
  const std::vector<std::string> asked = words_of_kind(device_kind);
  if (asked.empty()) return nullptr;
  return find_row([&](const Accelerator& row) {
    return std::ranges::any_of(row.device_kinds,
                               [&](std::string_view kind) { return !kind.empty() && words_of_kind(kind) == asked; });
  });
}

const Accelerator* find_accelerator_by_pci(std::string_view pci_id) noexcept {
  if (pci_id.empty()) return nullptr;
  return find_row([&](const Accelerator& row) {
    return std::ranges::any_of(row.pci_ids, [&](std::string_view id) { return equal_without_case(id, pci_id); });
  });
}

const Accelerator* find_accelerator_of_type(std::string_view hardware_type) noexcept {
  if (hardware_type.empty()) return nullptr;
  return find_row([&](const Accelerator& row) { return row.is_the_types_own && row.hardware_type == hardware_type; });
}

}  // namespace artifex_devices
