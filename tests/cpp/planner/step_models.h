// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "artifex_planner/step/work.h"

namespace artifex_devices::planner {

/// Makes models of one-letter logical axes: a dimension's index and axis are its letter.
class LetterModel {
 public:
  explicit LetterModel(std::map<char, int64_t> sizes) : sizes_(std::move(sizes)) {
    for (const auto& [letter, size] : sizes_) model.logical_axes.emplace_back(1, letter);
  }

  /// `batch` grows with the batch. Elements of arrays have 2 bytes.
  LetterModel& tensor(const std::string& name, const std::string& letters, StepRole role = StepRole::kActivation,
                      char batch = 'b') {
    StepTensor made;
    made.name = name;
    std::vector<int64_t> shape;
    for (const char letter : letters) {
      shape.push_back(sizes_.at(letter));
      made.axes.push_back(number(letter));
    }
    made.shape = Dims(shape);
    made.role = role;
    made.scales = letters.find(batch) != std::string::npos;
    letters_.push_back(letters);
    model.tensors.push_back(std::move(made));
    return *this;
  }

  LetterModel& op(StepOpKind kind, const std::string& first, const std::string& second, const std::string& output) {
    StepOp made;
    made.name = output;
    made.kind = kind;
    const auto set = [&](size_t place, const std::string& name) {
      const int tensor = find(name);
      (place < 2 ? made.inputs[place] : made.output) = tensor;
      for (const char letter : letters_[static_cast<size_t>(tensor)]) made.indices[place].push_back(number(letter));
    };
    set(0, first);
    if (!second.empty()) set(1, second);
    set(2, output);
    model.ops.push_back(std::move(made));
    return *this;
  }
  LetterModel& matmul(const std::string& first, const std::string& second, const std::string& output) {
    return op(StepOpKind::kMatmul, first, second, output);
  }

  /// Axes of the mesh that cut each letter, as bits.
  StepRules rules(const std::map<char, MeshAxes>& cuts) const {
    StepRules made(model.logical_axes.size(), 0);
    for (const auto& [letter, axes] : cuts) made[static_cast<size_t>(number(letter))] = axes;
    return made;
  }

  int find(const std::string& name) const {
    const auto found = std::ranges::find(model.tensors, name, &StepTensor::name);
    return static_cast<int>(found - model.tensors.begin());
  }

  StepModel model;

 private:
  int number(char letter) const { return static_cast<int>(std::distance(sizes_.begin(), sizes_.find(letter))); }
  std::map<char, int64_t> sizes_;
  std::vector<std::string> letters_;
};

/// "forward all_gather w over 1: 512": one line a collective, with " x N" where it is done N times.
inline std::vector<std::string> lines_of(const StepWork& work, const StepModel& model) {
  std::vector<std::string> lines;
  for (const StepCollective& each : work.collectives) {
    lines.push_back(fmt::format("{} {} {}{} over {}: {}{}", each.pass == StepPass::kForward ? "forward" : "backward",
                                to_string(each.kind), each.is_gradient ? "d " : "",
                                model.tensors[static_cast<size_t>(each.tensor)].name, each.axes, each.bytes.at(1),
                                each.count > 1 ? fmt::format(" x {}", each.count) : std::string()));
  }
  return lines;
}

/// Two matrices: In[b, d] * w1[e, f] -> Tmp[b, f] * w2[f, e] -> Out[b, d]; letters of activations and parameters differ
/// where rules may. 64 tokens, 8 wide, 32 inside: each matrix has 512 bytes, In and Out 1024, Tmp 4096.
inline LetterModel two_matrices() {
  LetterModel made({{'b', 64}, {'d', 8}, {'e', 8}, {'f', 32}});
  made.tensor("in", "bd").tensor("w1", "ef", StepRole::kParameter).tensor("tmp", "bf");
  made.tensor("w2", "fe", StepRole::kParameter).tensor("out", "bd");
  made.matmul("in", "w1", "tmp").matmul("tmp", "w2", "out");
  made.model.ops[0].indices[1][0] = made.model.ops[0].indices[0][1];  // d and e are one index
  made.model.ops[1].indices[1][1] = made.model.ops[1].indices[2][1];
  made.model.tokens = 64;
  made.model.optimizer_bytes = 8;
  return made;
}

}  // namespace artifex_devices::planner
