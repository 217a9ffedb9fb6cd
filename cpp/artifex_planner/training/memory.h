// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "artifex_planner/cost/device_rates.h"
#include "artifex_planner/training/config.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

enum class MemoryPart : uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorking };
inline constexpr int kMemoryPartCount = 5;
template <>
inline constexpr std::array<std::string_view, 5> kKindNames<MemoryPart>{"parameters", "gradients", "optimizer",
                                                                        "activations", "working"};

/// Layers of one pipeline stage: all its chunks together.
struct StageLayers {
  int64_t dense = 0;
  int64_t with_experts = 0;
  bool has_embedding = false;
  bool has_head = false;
  int64_t total() const noexcept { return dense + with_experts; }
  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};
/// The layers of each stage, first to last.
std::vector<StageLayers> layers_of_stages(const TrainingModel& model, const TrainingConfig& config);

/// Parameters of one device by kind of tensor, before ZeRO shards them. Routed experts are sharded over
/// config.expert_shards() devices, all other parameters over config.shards().
struct LocalParameters {
  TensorNumbers counts{};
  double& operator[](TensorKind kind) noexcept { return counts[static_cast<size_t>(kind)]; }
  double operator[](TensorKind kind) const noexcept { return counts[static_cast<size_t>(kind)]; }
  double total() const noexcept;
  void add(const LocalParameters& other, double times) noexcept;
  /// Bytes outside of routed experts (dense) and inside (experts).
  struct Bytes {
    double dense = 0;
    double experts = 0;
  };
  Bytes bytes(const TensorNumbers& each) const noexcept;
};
LocalParameters layer_local_parameters(const TrainingModel& model, const TrainingConfig& config,
                                       LayerKind kind) noexcept;
LocalParameters stage_parameters(const TrainingModel& model, const TrainingConfig& config,
                                 const StageLayers& layers) noexcept;

/// Parameters of the whole model by kind of tensor.
LocalParameters model_parameters(const TrainingModel& model) noexcept;

/// Bytes of parameters, gradients and optimizer state under ZeRO (Rajbhandari et al. 2019, arXiv:1910.02054, figure 1).
/// Example: 7.5e9 parameters on 64 devices with 2 + 2 + 12 bytes take 120, 31.4, 16.6 and 1.88 GB by stage.
std::array<double, 3> state_bytes(const LocalParameters& parameters, const TrainingConfig& config) noexcept;
/// The parameters whose states ZeRO leaves on one device.
LocalParameters owned_parameters(const LocalParameters& parameters, const TrainingConfig& config) noexcept;

/// Bytes of activations that one layer stores for one microbatch on one device.
struct LayerActivations {
  double kept = 0;      // as the configuration recomputes; full recomputation of this layer: see `input`
  double input = 0;     // the layer's input alone
  double complete = 0;  // without recomputation
};
/// Korthikanti et al. 2022 (arXiv:2205.05198, equations 1 to 4) for a GPT layer: s b h (34 + 5 a s / h), sharded.
LayerActivations layer_activations(const TrainingModel& model, const TrainingConfig& config, LayerKind kind) noexcept;

/// Number of tokens of one microbatch that routed experts of the busiest device process. With a capacity, these are the
/// tokens that are not dropped, or all slots if they are padded (GShard, arXiv:2006.16668, section 2.2; Switch
/// Transformer, arXiv:2101.03961, equation 3).
double expert_tokens(const TrainingModel& model, const TrainingConfig& config) noexcept;

/// Layers of a stage that are recomputed.
double recomputed_layers(const TrainingConfig& config, const StageLayers& layers) noexcept;

/// Bytes by part, of one stage.
using StageMemory = std::array<int64_t, kMemoryPartCount>;
int64_t total(const StageMemory& memory) noexcept;

/// Memory of a stage before the optimizer, ZeRO and offloading are chosen.
struct StageHolds {
  LocalParameters parameters;
  double activations = 0;  // bytes held at the same time without offloading
  double offloaded = 0;    // the same with offloading to host memory
  double recomputing = 0;  // bytes recomputed at the same time
  double output = 0;  // part of the activations: the output's and the loss's, freed before layers are computed again
  LocalParameters largest_layer;
  LocalParameters embedding_unit;
  LocalParameters output_unit;  // with the last norm
};
StageHolds stage_holds(const TrainingModel& model, const TrainingConfig& config, const StageLayers& layers,
                       int64_t stage) noexcept;
/// Whether each backward pass sends its reduced gradients to host memory: ZeRO 2 and 3 do so if the optimizer is there
/// (ZeRO-Offload, arXiv:2101.06840, section 4.1). Otherwise the device holds all gradients until the last pass.
inline bool sends_gradients_at_once(const TrainingConfig& config) noexcept {
  return config.offload_optimizer && config.zero >= 2;
}
/// Rounds each part to whole bytes, because searches and plans must add up the same numbers.
StageMemory stage_memory(const StageHolds& holds, const TrainingConfig& config) noexcept;
/// Bytes of one microbatch that the output keeps: inputs of the last norm and of its product, and the loss. They are
/// freed before the backward pass of the layers, so that they are not offloaded.
double output_activations(const TrainingModel& model, const TrainingConfig& config) noexcept;
/// Bytes of activations that a stage holds at the same time without offloading.
double stage_activations(const TrainingModel& model, const TrainingConfig& config, const StageLayers& layers,
                         int64_t stage) noexcept;

/// One device of a cluster and its host.
struct TrainingHardware {
  DeviceRates device;
  double host_bandwidth = 0;  // bytes/s; 0 where not known
  double host_memory = 0;     // bytes of a host; 0 where not known
  int64_t devices_per_host = 1;
  bool is_gpu = false;
  bool is_tpu = false;
  bool has_consecutive_hosts = true;  // devices of a host have consecutive ids
};
/// Errors about unknown rates name `operation`.
TrainingHardware training_hardware(const Cluster& cluster, std::string_view operation = "plan_training");

/// Bytes of one device of a stage in the memory of its host: optimizer state and gradients of the parameters that the
/// device updates (ZeRO-Offload, arXiv:2101.06840), and activations for the backward pass.
double offloaded_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept;

/// Bytes in the memory of the fullest host, given the bytes of one device of each stage. Hosts have consecutive
/// devices. In a torus, hosts are blocks, and all devices of a host count as devices of the fullest stage. Example: two
/// stages of 4 devices, with 3 and 1 bytes per device, use 3 x 4 + 1 x 4 = 16 bytes on a host of 8 devices.
int64_t fullest_host(const std::vector<double>& stages, const TrainingConfig& config, const TrainingHardware& hardware);

/// The nearest whole number of bytes, halves upwards; at most 2^60, because a few such numbers are added. `bytes` is
/// not negative. Searches round so often that std::llround, which is a call, takes too long.
constexpr int64_t whole_bytes(double bytes) noexcept {
  if (bytes < 0x1p52) return static_cast<int64_t>(bytes + 0.5);  // larger numbers have no fraction
  return static_cast<int64_t>(bytes < 0x1p60 ? bytes : 0x1p60);
}

}  // namespace artifex_devices::planner
