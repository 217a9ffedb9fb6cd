// SPDX-License-Identifier: Apache-2.0
// Fields of planned steps as callers see them: for the batch of the model, with its names.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "artifex_planner/fields.h"
#include "artifex_planner/step/suggestion_reasons.h"

namespace artifex_devices::planner {

void visit_fields(FieldsOf<StepSeconds> auto& seconds, const auto& visit) {
  visit("compute", seconds.compute);
  visit("memory", seconds.memory);
  visit("network", seconds.network);
  visit("overlapped", seconds.overlapped());
  visit("serial", seconds.serial());
}

/// A part of a planned step, with the plan and the model that it is of.
template <class Part>
struct OfStep {
  const Part& part;
  const PlannedStep& plan;
  const StepModel& model;
};

void visit_fields(FieldsOf<OfStep<StepMemory>> auto& memory, const auto& visit) {
  double total = 0;
  const auto bytes = [&](const char* name, double value) {
    total += std::nearbyint(value);
    visit(name, Amount{std::nearbyint(value)});
  };
  bytes("parameters", memory.part.parameters.at(1));
  bytes("gradients", memory.part.gradients.at(1));
  bytes("optimizer", memory.part.optimizer.at(1));
  bytes("activations", memory.part.activations.at(1));
  bytes("given", memory.part.given.at(1));
  bytes("working", memory.part.working_at(1));
  visit("available", memory.plan.hardware.memory_bytes);
  visit("total", Amount{total});
}

void visit_fields(FieldsOf<OfStep<StepProduct>> auto& product, const auto& visit) {
  visit("operation", product.model.ops[static_cast<size_t>(product.part.op)].name);
  visit("kind", product.part.kind);
  visit("format", product.part.format);
  visit("flops", Amount{product.part.flops.at(1)});
  visit("bytes", Amount{product.part.bytes.at(1)});
  visit("seconds",
        product.plan.product_seconds[static_cast<size_t>(&product.part - product.plan.work.products.data())]);
  visit("bound", product.part.flops.at(1) / product.plan.hardware.peak(product.part.format));
}

/// Axes of the mesh are bits.
void visit_fields(FieldsOf<OfStep<StepCollective>> auto& collective, const auto& visit) {
  const StepCollective& part = collective.part;
  const StepTensor& tensor = collective.model.tensors[static_cast<size_t>(part.tensor)];
  visit("op", part.kind);
  visit("tensor", tensor.name);
  visit("is_gradient", part.is_gradient);
  visit("is_parameter", part.is_parameter);
  visit("phase", part.pass);
  visit("operation", collective.model.ops[static_cast<size_t>(part.op)].name);
  visit("axes", part.axes);
  visit("devices", part.group);
  visit("count", part.count);
  visit("nbytes", Amount{part.bytes.at(1)});
  visit("bytes_received", Amount{received_bytes(part.kind, part.bytes.at(1), part.group)});
  visit("estimate", collective.plan.costs[static_cast<size_t>(&part - collective.plan.work.collectives.data())]);
}

void visit_fields(FieldsOf<OfStep<StepRegime>> auto& regime, const auto& visit) {
  const auto tokens = static_cast<double>(regime.model.tokens);
  visit("bound", regime.part.bound);
  visit("tokens_from", regime.part.begin * tokens);
  visit("tokens_to", regime.part.end * tokens);
}

void visit_fields(FieldsOf<OfStep<PlannedStep>> auto& step, const auto& visit) {
  const PlannedStep& plan = step.part;
  const auto of_step = [&]<class Part>(const std::vector<Part>& parts) {
    std::vector<OfStep<Part>> result;
    for (const Part& part : parts) result.push_back({part, plan, step.model});
    return result;
  };
  visit("memory", OfStep<StepMemory>{plan.work.memory, plan, step.model});
  visit("largest_batch", Amount{plan.largest_batch});
  visit("products", of_step(plan.work.products));
  visit("collectives", of_step(plan.work.collectives));
  visit("update_bytes", Amount{plan.work.update_bytes.at(1)});
  visit("elementwise_bytes", Amount{plan.work.elementwise_bytes.at(1)});
  visit("expected", plan.expected);
  visit("roofline", plan.bound);
  visit("limit", plan.bound.overlapped_bound());
  visit("serial_limit", plan.bound.serial_bound());
  visit("regimes", of_step(plan.regimes));
  visit("serial_regimes", of_step(plan.serial_regimes));
}

/// An option of a search, with the model.
struct SuggestedStep {
  const ExplainedSuggestion& option;
  const StepModel& model;
};
void visit_fields(FieldsOf<SuggestedStep> auto& suggested, const auto& visit) {
  const ExplainedSuggestion& option = suggested.option;
  visit("mesh", option.mesh);
  visit("rules", option.rules);
  visit("axis_names", option.axis_names);
  visit("why", option.reason);
  visit("plan", OfStep<PlannedStep>{option.plan, option.plan, suggested.model});
}

/// The result of a search, with its options explained.
struct SuggestedSteps {
  const Suggestions& found;
  const ExplainedSuggestions& explained;
  const StepModel& model;
};
void visit_fields(FieldsOf<SuggestedSteps> auto& suggested, const auto& visit) {
  const auto of_model = [&](const std::optional<ExplainedSuggestion>& option) {
    return option ? std::optional(SuggestedStep{*option, suggested.model}) : std::nullopt;
  };
  std::vector<SuggestedStep> options;
  for (const ExplainedSuggestion& each : suggested.explained.options) options.push_back({each, suggested.model});
  visit("options", options);
  visit("fastest_too_large", of_model(suggested.explained.too_large));
  visit("smallest", of_model(suggested.explained.smallest));
  visit("largest_batch", suggested.found.largest_batch);
  visit("possible", suggested.found.possible);
  visit("too_large", suggested.found.too_large);
  visit("without_network", suggested.found.without_network);
}

}  // namespace artifex_devices::planner
