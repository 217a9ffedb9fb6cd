// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/description.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/step/einsum_text.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 62;
constexpr double kMostStateBytes = 1 << 20;  // of an optimiser, for each parameter
constexpr size_t kMostLetters = 32;

constexpr std::array<std::pair<std::string_view, StepRole>, 3> kRoles = {
    {{"parameter", StepRole::kParameter}, {"activation", StepRole::kActivation}, {"given", StepRole::kGiven}}};

struct KindOfOperation {
  std::string_view name;
  StepOpKind kind;
  size_t inputs;
};
constexpr std::array<KindOfOperation, 4> kKinds = {{{"matmul", StepOpKind::kMatmul, 2},
                                                    {"elementwise", StepOpKind::kElementwise, 2},
                                                    {"lookup", StepOpKind::kLookup, 1},
                                                    {"route", StepOpKind::kRoute, 1}}};

const KindOfOperation* kind_of(std::string_view name) {
  const auto* found = std::ranges::find(kKinds, name, &KindOfOperation::name);
  return found == kKinds.end() ? nullptr : found;
}

using TensorsByName = std::map<std::string_view, const TensorDescription*>;

class Checker {
 public:
  explicit Checker(const StepDescription& step) : step_(step) {
    for (const TensorDescription& tensor : step.tensors) tensors_.emplace(tensor.name, &tensor);
  }

  std::vector<std::string> mistakes() {
    check_names();
    for (const TensorDescription& tensor : step_.tensors) check_tensor(tensor);
    if (!mistakes_.empty()) return std::move(mistakes_);
    for (const OperationDescription& operation : step_.operations) check_operation(operation);
    const bool operations_fit = mistakes_.empty();
    check_batch();
    if (step_.optimizer) check_optimizer();
    if (operations_fit) check_order();
    return std::move(mistakes_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    mistakes_.push_back(subject_ + fmt::format(text, std::forward<Args>(args)...));
  }

  void check_count(std::string_view name, int64_t count) {
    if (count < 1 || count >= kMostElements) add("{} is {}, expected an int of 1 or more, below 2**62", name, count);
  }

  void check_names() {
    if (step_.tensors.empty() || step_.operations.empty()) add("it has no tensors or no operations");
    check_count("tokens", step_.tokens);
    check_repeated("tensors", step_.tensors);
    check_repeated("operations", step_.operations);
  }

  template <class Part>
  void check_repeated(std::string_view what, const std::vector<Part>& parts) {
    std::map<std::string_view, int> counts;
    for (const Part& part : parts) {
      if (++counts[part.name] == 2) add("two {} are named {}", what, python_repr(part.name));
    }
  }

  void check_tensor(const TensorDescription& tensor) {
    subject_ = fmt::format("tensor {}: ", python_repr(tensor.name));
    if (tensor.shape.size() != std::ssize(tensor.axes)) {
      add("it has {} dimensions and {} axes", tensor.shape.size(), tensor.axes.size());
    }
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) {
      elements = size < 1 || elements < 0 ? -1 : size > kMostElements / elements ? kMostElements : elements * size;
    }
    if (elements < 0 || elements >= kMostElements) {
      add("shape is {}, expected ints of 1 or more, and fewer than 2**62 elements", to_string(tensor.shape));
    }
    if (std::ranges::find(kRoles, tensor.role, &std::pair<std::string_view, StepRole>::first) == kRoles.end()) {
      add("role is {}, expected one of parameter, activation, given", python_repr(tensor.role));
    }
    check_count("count", tensor.count);
    std::vector<std::string_view> growing;
    for (const std::string& axis : tensor.axes) {
      if (std::ranges::find(step_.batch_axes, axis) != step_.batch_axes.end()) growing.emplace_back(axis);
    }
    if (growing.size() > 1) add("it grows twice with the batch, along {}", fmt::join(growing, " and "));
    subject_.clear();
  }

  void check_operation(const OperationDescription& operation) {
    subject_ = fmt::format("operation {}: ", python_repr(operation.name));
    check_uses(operation);
    subject_.clear();
  }

  void check_uses(const OperationDescription& operation) {
    const KindOfOperation* kind = kind_of(operation.kind);
    if (kind == nullptr) {
      add("kind is {}, expected one of matmul, elementwise, lookup, route", python_repr(operation.kind));
      return;
    }
    std::vector<const TensorDescription*> used;
    std::vector<std::string> unknown;
    for (const std::string& name : with_output(operation)) {
      const auto found = tensors_.find(name);
      if (found == tensors_.end()) {
        unknown.push_back(python_repr(name));
      } else {
        used.push_back(found->second);
      }
    }
    if (!unknown.empty()) {
      std::vector<std::string_view> names;
      for (const TensorDescription& tensor : step_.tensors) names.emplace_back(tensor.name);
      add("it uses {}, expected names of tensors ({})", fmt::join(unknown, ", "), fmt::join(names, ", "));
      return;
    }
    if (operation.inputs.size() != kind->inputs) {
      add("it has {} inputs, expected {} of a {}", operation.inputs.size(), kind->inputs, operation.kind);
    }
    check_count("count", operation.count);
    if (used.back()->role == "parameter") add("it writes the parameter {}", python_repr(operation.output));
    check_format(operation, *kind, used);
    const std::optional<EinsumText> einsum = parse_einsum(operation.einsum);
    if (!einsum) {
      add("einsum is {}, expected one such as 'bd,df->bf'", python_repr(operation.einsum));
    } else if (!einsum->has_letters_only || einsum->inputs.size() != operation.inputs.size()) {
      add("einsum is {}, expected letters for {} inputs", python_repr(operation.einsum), operation.inputs.size());
    } else {
      check_letters(operation, *einsum, used);
    }
  }

  static std::vector<std::string> with_output(const OperationDescription& operation) {
    std::vector<std::string> names = operation.inputs;
    names.push_back(operation.output);
    return names;
  }

  /// A product has the format of the wider operand. Two different formats of one width do not determine it.
  void check_format(const OperationDescription& operation, const KindOfOperation& kind,
                    const std::vector<const TensorDescription*>& used) {
    if (kind.kind != StepOpKind::kMatmul || !operation.dtype.empty()) return;
    std::set<std::string_view> formats;
    std::set<double> widths;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      formats.insert(used[i]->dtype);
      widths.insert(used[i]->itemsize);
    }
    if (formats.size() > widths.size()) {
      add("it multiplies {}, expected a dtype for the product", fmt::join(formats, " by "));
    }
  }

  void check_letters(const OperationDescription& operation, const EinsumText& einsum,
                     const std::vector<const TensorDescription*>& used) {
    std::vector<std::string> letters;                                           // in the order of the einsum
    std::map<std::string, std::vector<std::pair<int64_t, std::string>>> sizes;  // of each letter, with a tensor
    for (size_t i = 0; i < used.size(); ++i) {
      const EinsumTerm& term = i < einsum.inputs.size() ? einsum.inputs[i] : einsum.output;
      const TensorDescription& tensor = *used[i];
      if (std::ssize(term.letters) != tensor.shape.size()) {
        add("{} for {} has {} letters, expected one for each dimension of {}", python_repr(term.text),
            python_repr(tensor.name), term.letters.size(), to_string(tensor.shape));
        continue;
      }
      if (std::set<std::string>(term.letters.begin(), term.letters.end()).size() != term.letters.size()) {
        add("{} for {} has a letter twice", python_repr(term.text), python_repr(tensor.name));
      }
      for (size_t d = 0; d < term.letters.size(); ++d) {
        const int64_t size = tensor.shape[static_cast<int64_t>(d)];
        auto& found = sizes[term.letters[d]];
        if (found.empty()) letters.push_back(term.letters[d]);
        if (std::ranges::find(found, size, &std::pair<int64_t, std::string>::first) == found.end()) {
          found.emplace_back(size, tensor.name);
        }
      }
    }
    for (const std::string& letter : letters) {
      if (operation.kind == "route" || sizes[letter].size() < 2) continue;
      std::vector<std::string> texts;
      for (const auto& [size, name] : sizes[letter]) texts.push_back(fmt::format("{} in {}", size, python_repr(name)));
      add("{} has unequal sizes: {}", python_repr(letter), fmt::join(texts, ", "));
    }
    if (operation.kind == "matmul" || operation.kind == "elementwise") {
      for (const std::string& letter : einsum.output.letters) {
        const auto has = [&](const EinsumTerm& term) {
          return std::ranges::find(term.letters, letter) != term.letters.end();
        };
        if (std::ranges::none_of(einsum.inputs, has)) add("{} is in the output only", python_repr(letter));
      }
    }
    if (letters.size() > kMostLetters) add("it has {} letters, expected at most {}", letters.size(), kMostLetters);
  }

  void check_batch() {
    if (step_.batch_axes.empty()) add("it has no batch_axes");
    std::map<std::string_view, std::set<int64_t>> sizes;
    for (const TensorDescription& tensor : step_.tensors) {
      for (size_t d = 0; d < tensor.axes.size(); ++d) {
        sizes[tensor.axes[d]].insert(tensor.shape[static_cast<int64_t>(d)]);
      }
    }
    for (const std::string& axis : step_.batch_axes) {
      const std::set<int64_t>& found = sizes[axis];
      if (found.size() == 1) continue;
      add("the batch axis {} has {}, expected one size", python_repr(axis),
          found.empty() ? std::string("no tensor") : fmt::format("the sizes {}", fmt::join(found, ", ")));
    }
    if (step_.batch_axes.empty()) return;
    const std::set<int64_t>& first = sizes[step_.batch_axes.front()];
    if (first.size() == 1 && step_.tokens % *first.begin() != 0) {
      add("tokens is {}, expected a multiple of {}, the size of {} in the shapes", step_.tokens, *first.begin(),
          python_repr(step_.batch_axes.front()));
    }
  }

  void check_optimizer() {
    const double bytes = step_.optimizer->bytes_per_parameter;
    if (!(bytes >= 0 && bytes <= kMostStateBytes)) {
      add("bytes_per_parameter is {}, expected a number of 0 to {}", bytes, static_cast<int64_t>(kMostStateBytes));
    }
    std::set<std::string_view> used;
    for (const OperationDescription& operation : step_.operations) {
      used.insert(operation.inputs.begin(), operation.inputs.end());
    }
    for (const TensorDescription& tensor : step_.tensors) {
      if (tensor.role != "parameter" || used.contains(tensor.name)) continue;
      add("no operation uses parameter {}, expected an operation that defines its gradient", python_repr(tensor.name));
    }
  }

  /// Activations must be written before they are read. Caches may be written after they are read.
  void check_order() {
    std::map<std::string_view, size_t> writer;
    const auto& operations = step_.operations;
    for (size_t i = 0; i < operations.size(); ++i) writer.emplace(operations[i].output, i);
    for (size_t i = 0; i < operations.size(); ++i) {
      std::set<std::string_view> read;
      for (const std::string& name : operations[i].inputs) {
        const auto found = writer.find(name);
        const bool is_early = found != writer.end() && found->second >= i;
        if (!is_early || tensors_.at(name)->role != "activation" || !read.insert(name).second) continue;
        add("operation {} reads {}, which {}", python_repr(operations[i].name), python_repr(name),
            found->second == i
                ? std::string("it writes itself")
                : fmt::format("only the later operation {} writes", python_repr(operations[found->second].name)));
      }
    }
  }

  const StepDescription& step_;
  TensorsByName tensors_;
  std::string subject_;  // begins the mistakes of one tensor or operation
  std::vector<std::string> mistakes_;
};

/// A dtype in the words of the accelerator catalogue: all float8 formats are one.
std::string_view format_name(std::string_view dtype) {
  for (const std::string_view narrow : {"float8", "float4"}) {
    if (dtype.starts_with(narrow)) return narrow;
  }
  return dtype;
}

StepOp operation_of(const OperationDescription& from, const std::vector<TensorDescription>& tensors,
                    const std::map<std::string_view, int>& numbers, std::string_view operation) {
  StepOp op;
  op.name = from.name;
  op.kind = kind_of(from.kind)->kind;
  op.count = from.count;
  op.is_recomputed = from.is_recomputed;
  op.is_causal = from.is_causal;
  op.output = numbers.at(from.output);
  const EinsumText einsum = *parse_einsum(from.einsum);
  std::map<std::string, int> letters;
  const auto indices = [&](const EinsumTerm& term) {
    std::vector<int> found;
    for (const std::string& letter : term.letters) {
      found.push_back(letters.try_emplace(letter, static_cast<int>(letters.size())).first->second);
    }
    return found;
  };
  const TensorDescription* widest = nullptr;
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    op.inputs.at(i) = numbers.at(from.inputs[i]);
    op.indices.at(i) = indices(einsum.inputs[i]);
    const TensorDescription& input = tensors[static_cast<size_t>(op.inputs.at(i))];
    if (widest == nullptr || input.itemsize > widest->itemsize) widest = &input;
  }
  op.indices[2] = indices(einsum.output);
  const std::string_view format = format_name(from.dtype.empty() ? widest->dtype : from.dtype);
  const auto found = matmul_format_from_name(format);
  if (!found && op.kind == StepOpKind::kMatmul) {
    throw_error<Unavailable>(
        "{}: no source publishes FLOP/s for products of {} ({}); expected a format of artifex_devices.roofline; give "
        "the operation a dtype",
        operation, format, op.name);
  }
  op.format = found.value_or(MatmulFormat::kBFloat16);
  return op;
}

}  // namespace

std::vector<std::string> step_mistakes(const StepDescription& description) { return Checker(description).mistakes(); }

StepModel step_model(const StepDescription& description, std::string_view operation) {
  if (const std::vector<std::string> wrong = step_mistakes(description); !wrong.empty()) {
    throw_error("{}: the step is inconsistent: {}; expected parts that fit each other; correct each", operation,
                fmt::join(wrong, "; "));
  }
  StepModel model;
  model.tokens = description.tokens;
  model.is_training = description.optimizer.has_value();
  if (description.optimizer) {
    model.optimizer_bytes = description.optimizer->bytes_per_parameter;
    model.gradient_itemsize = description.optimizer->gradient_itemsize;
    model.holds_gradients = description.optimizer->holds_gradients;
  }
  std::map<std::string_view, int> axes;
  std::map<std::string_view, int> tensors;
  for (const TensorDescription& from : description.tensors) {
    StepTensor tensor;
    tensor.name = from.name;
    tensor.shape = from.shape;
    for (const std::string& axis : from.axes) {
      const auto [found, is_new] = axes.try_emplace(axis, static_cast<int>(axes.size()));
      if (is_new) model.logical_axes.push_back(axis);
      tensor.axes.push_back(found->second);
      if (std::ranges::find(description.batch_axes, axis) != description.batch_axes.end()) tensor.scales = true;
    }
    tensor.itemsize = from.itemsize;
    tensor.role = std::ranges::find(kRoles, from.role, &std::pair<std::string_view, StepRole>::first)->second;
    tensor.count = from.count;
    tensor.is_kept = from.is_kept;
    tensor.is_on_chip = from.is_on_chip;
    tensors.emplace(from.name, static_cast<int>(model.tensors.size()));
    model.tensors.push_back(std::move(tensor));
  }
  for (const std::string& axis : description.batch_axes) model.batch_axes.push_back(axes.at(axis));
  for (const OperationDescription& from : description.operations) {
    model.ops.push_back(operation_of(from, description.tensors, tensors, operation));
  }
  return model;
}

}  // namespace artifex_devices::planner
