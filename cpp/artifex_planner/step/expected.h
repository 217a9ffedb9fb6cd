// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_planner/cost/device_rates.h"
#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/fields.h"
#include "artifex_planner/step/network.h"
#include "artifex_planner/step/work.h"

namespace artifex_devices::planner {

/// Expected seconds of the parts of a step on each device, as training plans count them.
struct ExpectedStep {
  double products = 0;
  double attention = 0;  // products with an array that stays on the chip
  double elementwise = 0;
  double update = 0;
  double layers = 0;       // launches and gaps
  double once = 0;         // of a training step: data, logging, stragglers
  double weights = 0;      // collectives of parameters and of their gradients
  double activations = 0;  // other collectives

  double compute() const noexcept { return products + attention + elementwise; }
  /// Everything but collectives.
  double device() const noexcept { return compute() + update + layers + once; }
  double network() const noexcept { return activations + weights; }
  /// Part of `weights` that computation hides: no activation waits for them. Other collectives do not, because they use
  /// the same links; so the step is never below its bound.
  double hidden() const noexcept;
  double exposed() const noexcept { return activations + (weights - hidden()); }
  double overlapped() const noexcept { return device() + exposed(); }
  double serial() const noexcept { return device() + network(); }
};
void visit_fields(FieldsOf<ExpectedStep> auto& step, const auto& visit) {
  visit("products", step.products);
  visit("attention", step.attention);
  visit("elementwise", step.elementwise);
  visit("update", step.update);
  visit("layers", step.layers);
  visit("once", step.once);
  visit("weights", step.weights);
  visit("activations", step.activations);
  visit("hidden", step.hidden());
  visit("overlapped", step.overlapped());
  visit("serial", step.serial());
}

/// Expected seconds of one product of a step, all its repetitions.
double expected_product_seconds(const StepProduct& product, const DeviceRates& hardware, const Efficiency& efficiency);

/// Expected seconds of the work without its collectives: a lower bound of the step, whatever these take.
ExpectedStep expected_device_seconds(const StepWork& work, const DeviceRates& hardware, const Efficiency& efficiency);

/// Expected seconds of the work. Throws as step_seconds() does.
ExpectedStep expected_step(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network,
                           const Efficiency& efficiency);

}  // namespace artifex_devices::planner
