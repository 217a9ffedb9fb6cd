// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace artifex_devices::planner {

/// Kinds of tensors of a model, which may have dtypes of their own.
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
std::string_view to_string(TensorKind kind) noexcept;  // "embedding", "head", "norm", "attention", ...

/// A number for each kind of tensor.
using TensorNumbers = std::array<double, kTensorKindCount>;
constexpr TensorNumbers every_tensor(double value) noexcept {
  return {value, value, value, value, value, value, value};
}

enum class TrainingOptimizer : uint8_t { kSgd, kAdam, kAdamMaster, kAdafactor, kMuon };

/// Bytes of state for each parameter: SGD 0, Adam 8 (two float32 moments), AdamW with a float32 master copy 12 (ZeRO,
/// arXiv:1910.02054, section 3.1), Adafactor 4 (a float32 master copy; its factored moments are below 0.1 %; those of
/// vectors are not factored: 8; arXiv:1804.04235, section 3), Muon 8 (momentum and master copy in float32; embedding,
/// head and norms are updated by AdamW: 12; KellerJordan/Muon, README.md).
double optimizer_bytes(TrainingOptimizer optimizer, TensorKind kind) noexcept;

}  // namespace artifex_devices::planner
