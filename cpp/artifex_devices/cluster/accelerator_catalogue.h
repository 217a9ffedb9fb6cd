// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace artifex_devices {

/// Where numbers are from: a vendor's page, a paper, a source file.
struct CatalogueSource {
  std::string_view id;       // "S8"
  std::string_view title;    // title of the page, paper or file
  std::string_view address;  // "" without one
};

/// Number formats of matrix products. to_string() returns their names.
enum class MatmulFormat : uint8_t {
  kBFloat16,
  kFloat16,
  kFloat32,
  kTensorFloat32,
  kInt8,
  kFloat8,
  kInt4,
  kFloat4,
};
inline constexpr int kMatmulFormatCount = 8;

/// "bfloat16", "float16", "float32", "tensorfloat32", "int8", "float8", "int4", "float4".
std::string_view to_string(MatmulFormat format) noexcept;
std::optional<MatmulFormat> matmul_format_from_name(std::string_view name) noexcept;

/// Links between chips of one kind. Bandwidths are bytes/s of one link in one direction.
struct CatalogueLinks {
  std::string_view kind{};                  // "ICI", "NVLink 4", ...
  int links = 0;                            // of one chip
  std::optional<int> torus_dims{};          // nothing: behind switches, or all to all
  std::optional<double> one_way{};          // reached by programs
  std::optional<double> nominal_one_way{};  // from the vendor's page, where it differs
  std::array<int, 3> pod{};                 // largest torus; zeros where unknown
  std::string_view pod_note{};              // known facts if `pod` is unknown
  std::string_view wrap{};                  // rule of the wraparound: "cube4", "axis16", ""
  std::string_view wrap_note{};
  std::optional<int> domain_chips{};  // GPUs that reach each other over these links
  std::string_view domain_note{};
  std::optional<int> switches{};  // between these GPUs; 0: none
};

/// One accelerator, per chip; dense FLOP/s (no sparsity), bytes, bytes/s. Unpublished values are nullopt, never 0.
struct Accelerator {
  std::string_view name{};
  std::string_view hardware_type{};  // value of HardwareType; "" where the documents have none
  bool is_the_types_own = false;     // whether the document's table means this chip, of several of one type
  std::string_view platform{};       // "tpu" or "gpu"
  std::array<std::string_view, 4> device_kinds{};
  std::array<std::string_view, 3> pci_ids{};  // "10de:2330"
  std::array<std::optional<double>, kMatmulFormatCount> peak_flops{};
  int64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  std::optional<int> cores_per_chip{};    // TensorCores of a TPU
  std::optional<int> devices_per_chip{};  // JAX devices
  CatalogueLinks links{};
  std::optional<int> chips_per_host{};
  std::array<int, 3> host_shape{};  // chips of a host in the torus; zeros where unknown
  std::optional<double> pcie_one_way{};
  std::optional<double> network_per_chip{};        // one way
  std::array<std::string_view, 3> sources{};       // ids; for FLOP/s, memory and its bandwidth
  std::array<std::string_view, 2> link_sources{};  // ids; for links, host and network
  std::string_view pci_source{};                   // id; "" without PCI ids
  std::string_view note{};                         // contradictions between sources, unchecked facts

  constexpr std::optional<double> peak(MatmulFormat format) const noexcept {
    return peak_flops[static_cast<size_t>(format)];
  }
};

/// All accelerators, TPUs first, older before newer. Rows may share a HardwareType, but no name, kind or PCI id.
std::span<const Accelerator> accelerator_catalogue() noexcept;

std::span<const CatalogueSource> catalogue_sources() noexcept;
/// Returns nullptr for an unknown id.
const CatalogueSource* find_catalogue_source(std::string_view id) noexcept;

/// By name, without case: "NVIDIA H100 SXM". This and the next three return nullptr for an unknown chip.
const Accelerator* find_accelerator_by_name(std::string_view name);

/// By the device's own name. All words must be the same, without case; vendors' words may be missing, and features of
/// AMD's architectures ("gfx942:sramecc+") do not count: "NVIDIA H100 80GB HBM3" and "h100 80gb hbm3" are the H100,
/// "NVIDIA H100 80GB HBM3 MIG 1g.10gb" (a part of one) and "NVIDIA H100 PCIe" are none, "TPU v5" is the v5p.
const Accelerator* find_accelerator_by_kind(std::string_view device_kind);

/// By "vendor:device" in hexadecimal, without case: "10de:2330".
const Accelerator* find_accelerator_by_pci(std::string_view pci_id) noexcept;

/// By a HardwareType's value; of A100 and V100 the variant that the document's table means (80 GB and 16 GB).
const Accelerator* find_accelerator_of_type(std::string_view hardware_type) noexcept;

}  // namespace artifex_devices
