// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "artifex_planner/fields.h"
#include "artifex_planner/kind_names.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

/// Kinds of tensors of a model. Each may have its own dtype.
enum class TensorKind : uint8_t {
  kEmbedding,  // with learned positions, and its copy in the last stage where the output uses it
  kHead,       // the output's matrix
  kNorm,       // scales of norms, and biases
  kAttention,  // matrices of attention
  kMlp,        // matrices of MLPs and of shared experts
  kRouter,     // matrices that choose the experts
  kExpert      // matrices of routed experts
};
inline constexpr int kTensorKindCount = 7;
template <>
inline constexpr std::array<std::string_view, 7> kKindNames<TensorKind>{"embedding", "head",   "norm",  "attention",
                                                                        "mlp",       "router", "expert"};

/// A number for each kind of tensor.
using TensorNumbers = std::array<double, kTensorKindCount>;
constexpr TensorNumbers every_tensor(double value) noexcept {
  return {value, value, value, value, value, value, value};
}

enum class TrainingOptimizer : uint8_t { kSgd, kAdam, kAdamMaster, kAdafactor, kMuon };
template <>
inline constexpr std::array<std::string_view, 5> kKindNames<TrainingOptimizer>{"sgd", "adam", "adamw-fp32-master",
                                                                               "adafactor", "muon"};

/// Bytes of state for each parameter, by kind of tensor: SGD 0, Adam 8 (two float32 moments), AdamW with a float32
/// master copy 12 (ZeRO, arXiv:1910.02054, section 3.1), Adafactor 4 (a float32 master copy; its factored moments are
/// below 0.1 %; moments of vectors are not factored: 8; arXiv:1804.04235, section 3), Muon 8 (momentum and master copy
/// in float32; embedding, head and norms are updated by AdamW: 12; KellerJordan/Muon, README.md).
const TensorNumbers& optimizer_bytes(TrainingOptimizer optimizer) noexcept;

enum class PipelineSchedule : uint8_t { kGPipe, kOneForwardOneBackward, kInterleaved };
template <>
inline constexpr std::array<std::string_view, 3> kKindNames<PipelineSchedule>{"gpipe", "1f1b", "interleaved"};

enum class Recompute : uint8_t {
  kNone,
  kSelective,  // the scores of attention (Korthikanti et al. 2022, arXiv:2205.05198); in PyTorch half of the products
  kFull        // whole layers from their inputs
};
template <>
inline constexpr std::array<std::string_view, 3> kKindNames<Recompute>{"none", "selective", "full"};

/// Recomputation of whole layers: Megatron-LM's --recompute-method.
enum class RecomputeMethod : uint8_t {
  kBlock,   // some layers of each stage, each from its input; other layers keep their activations
  kUniform  // all layers, in units of some layers, each unit from its input (Chen et al. 2016, arXiv:1604.06174)
};
template <>
inline constexpr std::array<std::string_view, 2> kKindNames<RecomputeMethod>{"block", "uniform"};

enum class ContextMethod : uint8_t {
  kRing,      // keys and values pass along a ring
  kAllToAll,  // heads are exchanged for tokens (Ulysses, arXiv:2309.14509)
  kAllGather  // keys and values are gathered (Llama 3, arXiv:2407.21783, section 3.3.2)
};
template <>
inline constexpr std::array<std::string_view, 3> kKindNames<ContextMethod>{"ring", "all_to_all", "all_gather"};

/// Kernels of attention that store no scores.
enum class AttentionKernel : uint8_t {
  kNative,  // the best one of the chip: FlashAttention-3 or cuDNN on an H100
  kFlash2   // FlashAttention-2, which has no instructions of later chips than the A100
};
template <>
inline constexpr std::array<std::string_view, 2> kKindNames<AttentionKernel>{"native", "flash2"};

/// Program whose memory a plan describes.
enum class TrainingFramework : uint8_t {
  kAny,      // not named: what needs most memory
  kTorch,    // PyTorch with FSDP2, as TorchTitan uses it
  kMaxText,  // JAX: XLA allocates all buffers of a step at once
  kMegatron  // Megatron-LM and NeMo
};
template <>
inline constexpr std::array<std::string_view, 4> kKindNames<TrainingFramework>{"any", "torch", "maxtext", "megatron"};

/// Arrays that the loss holds; loss_bytes() counts them.
enum class TrainingLoss : uint8_t {
  kPlain,    // float32 logits, their log-softmax and its gradient beside the logits
  kChunked,  // the output's product and the loss run on one part of the tokens at a time
  kFused     // one kernel writes the gradient of the logits over the logits
};
template <>
inline constexpr std::array<std::string_view, 3> kKindNames<TrainingLoss>{"plain", "chunked", "fused"};

/// Communication that may be hidden behind computation.
enum class Traffic : uint8_t { kTensor, kContext, kExpert, kPipeline, kData, kOffload };
inline constexpr int kTrafficCount = 6;
template <>
inline constexpr std::array<std::string_view, 6> kKindNames<Traffic>{"tensor",   "context", "expert",
                                                                     "pipeline", "data",    "offload"};

/// Distribution of a training step over devices. Ranks are numbered with the tensor axis fastest, then context, data
/// and pipeline, as Megatron-LM does.
struct TrainingConfig {
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t data = 1;
  int64_t pipeline = 1;
  int64_t expert = 1;         // ways of experts, over tensor x context x data ranks
  int64_t expert_tensor = 1;  // tensor ways of one expert: 1 or `tensor`
  bool sequence_parallel = false;
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int64_t chunks = 1;  // of each stage, for the interleaved schedule
  int zero = 0;
  int64_t zero_shards = 0;  // devices over which states are sharded, of context x data; 0: all
  int64_t microbatch = 1;
  int64_t batch = 1;  // sequences of a step
  int64_t sequence = 1;
  TrainingFramework framework = TrainingFramework::kAny;
  TrainingLoss loss = TrainingLoss::kPlain;
  int64_t loss_chunks = 8;  // parts of the tokens of a microbatch, for the chunked loss
  Recompute recompute = Recompute::kNone;
  RecomputeMethod recompute_method = RecomputeMethod::kBlock;
  int64_t recompute_layers = -1;  // for full recomputation. Block: of each stage, -1: all. Uniform: of a unit, -1: 1
  ContextMethod context_method = ContextMethod::kRing;
  TrainingOptimizer optimizer = TrainingOptimizer::kAdamMaster;
  TensorNumbers parameter_bytes = every_tensor(2);  // of an element
  TensorNumbers gradient_bytes = every_tensor(4);   // also while gradients are reduced
  double activation_bytes = 2;
  MatmulFormat format = MatmulFormat::kBFloat16;
  bool flash_attention = true;
  bool causal = true;  // kernels of attention skip masked scores
  bool dropout = false;
  bool offload_optimizer = false;
  bool offload_activations = false;
  double expert_imbalance = 1;  // tokens of the busiest expert group over the mean, before any are dropped
  double expert_capacity = 0;   // maximum tokens of an expert over the mean; further tokens are dropped. 0: no limit
  bool expert_padding = false;  // each expert gets as many tokens as its capacity, some of them empty
  bool sharp = false;           // switches between nodes sum the gradients of replicas (SHARP of InfiniBand)
  AttentionKernel attention_kernel = AttentionKernel::kNative;
  bool context_balanced =
      true;              // each context rank has an early and a late part of the sequence, else consecutive ones
  bool compiled = true;  // element-wise operations are fused
  std::array<double, kTrafficCount> overlap{0, 1, 0, 0, 1, 1};

  /// Tokens that the busiest expert group works on over the mean.
  double expert_load() const noexcept {
    if (expert_capacity <= 0) return expert_imbalance;
    return expert_padding || expert_capacity < expert_imbalance ? expert_capacity : expert_imbalance;
  }
  /// Layers of a unit of full recomputation.
  int64_t unit_layers() const noexcept {
    return recompute_method == RecomputeMethod::kUniform && recompute_layers > 0 ? recompute_layers : 1;
  }
  int64_t devices() const noexcept { return tensor * context * data * pipeline; }
  int64_t microbatches() const noexcept { return batch / (data * microbatch); }
  int64_t shards() const noexcept { return zero_shards > 0 ? zero_shards : context * data; }
  /// Devices that hold copies of one expert's parameters.
  int64_t expert_replicas() const noexcept { return tensor * context * data / (expert * expert_tensor); }
  /// Devices over which ZeRO shards one expert's states: at most `zero_shards`, a divisor of the replicas.
  int64_t expert_shards() const noexcept {
    const int64_t replicas = expert_replicas();
    if (zero_shards == 0 || zero_shards >= replicas) return replicas;
    int64_t shards = zero_shards;
    while (replicas % shards != 0) --shards;
    return shards;
  }
  friend bool operator==(const TrainingConfig&, const TrainingConfig&) = default;
};
void visit_fields(FieldsOf<TrainingConfig> auto& config, const auto& visit) {
  visit("tensor", config.tensor);
  visit("context", config.context);
  visit("context_method", config.context_method);
  visit("data", config.data);
  visit("pipeline", config.pipeline);
  visit("expert", config.expert);
  visit("expert_tensor", config.expert_tensor);
  visit("sequence_parallel", config.sequence_parallel);
  visit("schedule", config.schedule);
  visit("chunks", config.chunks);
  visit("zero", config.zero);
  visit("zero_shards", config.zero_shards);
  visit("microbatch", config.microbatch);
  visit("batch", config.batch);
  visit("sequence", config.sequence);
  visit("framework", config.framework);
  visit("loss", config.loss);
  visit("loss_chunks", config.loss_chunks);
  visit("recompute", config.recompute);
  visit("recompute_method", config.recompute_method);
  visit("recompute_layers", config.recompute_layers);
  visit("optimizer", config.optimizer);
  visit("parameter_bytes", by_kind<TensorKind>(config.parameter_bytes));
  visit("gradient_bytes", by_kind<TensorKind>(config.gradient_bytes));
  visit("activation_bytes", config.activation_bytes);
  visit("dtype", config.format);
  visit("flash_attention", config.flash_attention);
  visit("causal", config.causal);
  visit("dropout", config.dropout);
  visit("offload_optimizer", config.offload_optimizer);
  visit("offload_activations", config.offload_activations);
  visit("expert_imbalance", config.expert_imbalance);
  visit("expert_capacity", config.expert_capacity);
  visit("expert_padding", config.expert_padding);
  visit("sharp", config.sharp);
  visit("attention_kernel", config.attention_kernel);
  visit("context_balanced", config.context_balanced);
  visit("compiled", config.compiled);
  visit("overlap", by_kind<Traffic>(config.overlap));
}

/// Largest count of a configuration: ways, sequences, tokens.
inline constexpr int64_t kMostTrainingCount = int64_t{1} << 31;

/// Everything that is inconsistent in the configuration, for a model and a number of devices: what is wrong and what is
/// expected, separated by "; ". Empty if nothing is.
std::string training_mistakes(const TransformerShape& model, const TrainingConfig& config, int64_t devices);
/// Whether there are no mistakes, without texts.
bool is_consistent(const TransformerShape& model, const TrainingConfig& config, int64_t devices) noexcept;

/// Layers of each virtual stage, as equal as possible. If some stages must have one layer less, the last and the first
/// are chosen before other stages.
/// Example: 126 layers on 16 stages: 7, 8 x 14, 7 (Llama 3 405B, arXiv:2407.21783, section 3.3.2).
std::vector<int64_t> stage_layers(int64_t layers, int64_t stages);

/// Microbatches whose activations stage `stage` holds at once, in chunks of a stage: all for GPipe, the stages that
/// follow for 1F1B, and Megatron's warm-up for the interleaved schedule (arXiv:2104.04473).
double chunks_in_flight(const TrainingConfig& config, int64_t stage) noexcept;

}  // namespace artifex_devices::planner
