// SPDX-License-Identifier: Apache-2.0
#include "answer.h"
#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/seconds_text.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/render/bar_charts.h"
#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/training/plan.h"
#include "devices.h"

namespace artifex_devices::playground {
namespace {

using namespace planner;

void read(JsonReader& json, std::string_view /*field*/, int64_t& into) { into = json.integer(); }
void read(JsonReader& json, std::string_view /*field*/, std::string& into) { into = json.string(); }
void read(JsonReader& json, std::string_view field, bool& into) { into = flag_of(json.raw(), field); }
template <NamedKind Kind>
void read(JsonReader& json, std::string_view field, Kind& into) {
  const std::string name = json.string();
  const std::optional<Kind> kind = kind_from_name<Kind>(name);
  if (!kind) throw_error("{} is {:?}; expected one of the documented names; correct it", field, name);
  into = *kind;
}

TransformerShape model_of(const Question& question) {
  TransformerShape shape;
  question.members("model", [&](JsonReader& json, const std::string& name) {
    bool is_known = false;
    visit_fields(shape, [&](const char* field, auto& into) {
      if (name != field) return;
      is_known = true;
      read(json, name, into);
    });
    if (!is_known) json.skip();
  });
  return shape;
}

template <NamedKind Kind>
Kind kind_of(const Question& question, const std::string& field) {
  const std::string name = question.text(field);
  const std::optional<Kind> kind = kind_from_name<Kind>(name);
  if (!kind) throw_error("{} is {:?}; expected one of the documented names; correct it", field, name);
  return *kind;
}

/// As TrainingConfig of Python with the same arguments: `data` is the rest of the devices.
TrainingConfig config_of(const Question& question, int64_t devices) {
  TrainingConfig config;
  const auto count = [&](const char* field) {
    const int64_t value = question.integer(field);
    if (value >= 1 && value <= kMostTrainingCount) return value;
    throw_error("TrainingConfig: {} is {}; expected 1 to {}; correct it", field, value, kMostTrainingCount);
  };
  config.batch = count("batch");
  config.sequence = count("sequence");
  config.microbatch = count("microbatch");
  config.tensor = count("tensor");
  config.context = count("context");
  config.pipeline = count("pipeline");
  config.expert = count("expert");
  config.sequence_parallel = config.tensor > 1;
  config.zero = static_cast<int>(question.integer("zero"));
  if (config.zero > 3) throw_error("TrainingConfig: zero is {}; expected 0 to 3; correct it", config.zero);
  config.recompute = kind_of<Recompute>(question, "recompute");
  config.optimizer = kind_of<TrainingOptimizer>(question, "optimizer");
  const double others = to_real(config.tensor) * to_real(config.context) * to_real(config.pipeline);
  if (others > to_real(devices) || devices % static_cast<int64_t>(others) != 0) {
    throw_error(
        "plan_training: tensor {} x context {} x pipeline {} = {} does not divide {} devices; expected a divisor, "
        "because data is the rest; change one of them",
        config.tensor, config.context, config.pipeline, static_cast<int64_t>(others), devices);
  }
  config.data = devices / static_cast<int64_t>(others);
  return config;
}

/// The parts of a step, one bar below the other, with the roofline as a line.
std::string waterfall_svg(const std::string& title, const TrainingPlan& plan) {
  BarChart chart;
  chart.title = title;
  chart.kinds = {"computation", "communication that is not hidden", "waiting and the rest"};
  chart.limit = plan.roofline.total();
  chart.limit_text = "roofline";
  chart.is_waterfall = true;
  chart.notes = {"seconds: model, published rates with the factors of Efficiency"};
  const auto add = [&](std::string label, double value, size_t kind, std::string total, bool is_aside) {
    std::vector<double> parts(chart.kinds.size(), 0);
    parts[kind] = value;
    chart.bars.push_back(
        {label, parts, std::vector<std::string>(chart.kinds.size(), label), std::move(total), is_aside});
  };
  const double all = plan.expected.total();
  for (int i = 0; i < kTimePartCount; ++i) {
    const auto part = static_cast<TimePart>(i);
    const double value = plan.expected[part];
    if (value <= 0) continue;
    const bool waits = part == TimePart::kBubble || part == TimePart::kFixed;
    const bool sends = !waits && part >= TimePart::kTensor && part != TimePart::kUpdate;
    add(std::string(to_string(part)), value,
        waits   ? 2
        : sends ? 1
                : 0,
        fmt::format("{}, {:.1f}%", seconds_text(value), 100 * value / all), false);
  }
  for (size_t i = 0; i < kTrafficCount; ++i) {
    const double value = plan.expected.hidden[i];
    if (value > 0) add(fmt::format("hidden {}", kKindNames<Traffic>[i]), value, 1, seconds_text(value), true);
  }
  return bar_chart_svg(chart);
}

/// The memory of each stage by part.
std::string memory_svg(const std::string& title, const TrainingPlan& plan) {
  constexpr size_t kMostStages = 32;
  BarChart chart;
  chart.title = title;
  chart.kinds = {kKindNames<MemoryPart>.begin(), kKindNames<MemoryPart>.end()};
  chart.limit = to_real(plan.available);
  chart.limit_text = "memory of a device";
  chart.notes = {"bytes of each device of a stage (model)"};
  for (size_t i = 0; i < std::min(plan.stages.size(), kMostStages); ++i) {
    const TrainingStage& stage = plan.stages[i];
    ChartBar bar{fmt::format("stage {}", i), {}, {}, bytes_text(total(stage.memory))};
    for (size_t part = 0; part < stage.memory.size(); ++part) {
      bar.parts.push_back(to_real(stage.memory[part]));
      bar.texts.push_back(fmt::format("{} {}", chart.kinds[part], bytes_text(stage.memory[part])));
    }
    chart.bars.push_back(std::move(bar));
  }
  if (plan.stages.size() > kMostStages) {
    chart.notes.push_back(fmt::format("{} more stages are left out", plan.stages.size() - kMostStages));
  }
  return bar_chart_svg(chart);
}

/// A factor of the expected seconds.
struct UsedFactor {
  std::string name;
  SourcedNumber number;
};
void visit_fields(FieldsOf<UsedFactor> auto& factor, const auto& visit) {
  visit("name", factor.name);
  visit("value", factor.number.value);
  visit("source", factor.number.source);
}

/// The factors that act: 0 and 1 do not.
std::vector<UsedFactor> factors_of(const Efficiency& efficiency) {
  std::vector<UsedFactor> factors;
  for (size_t i = 0; i < efficiency.factors.size(); ++i) {
    const SourcedNumber& number = efficiency.factors[i];
    const auto factor = static_cast<Factor>(i);
    if (number.value == 0 || number.value == 1 || factor == Factor::kSharp) continue;
    if (factor >= Factor::kStream) continue;  // of inference
    factors.push_back({std::string(kKindNames<Factor>[i]), number});
  }
  return factors;
}

}  // namespace

JsonObject training_answer(const Question& question) {
  const TransformerShape shape = model_of(question);
  const ClusterRef cluster = playground::cluster_of(question);
  if (!cluster) throw_error("plan_training: there is no cluster; expected a chip such as h100 or v5e; choose one");
  check_shape(shape);
  const TrainingConfig config = config_of(question, cluster->device_count());
  const Efficiency efficiency = default_efficiency(*cluster);
  const TrainingPlan plan = plan_training(shape, *cluster, config, efficiency);
  const double seconds = plan.expected.total();
  const auto devices = to_real(plan.devices);

  const std::vector<Rate> rates = playground::rates_of(*cluster, config.format);
  const std::vector<UsedFactor> factors = factors_of(efficiency);
  std::vector<std::string> texts;
  for (const Rate& rate : rates) texts.push_back(rate.source);
  for (const UsedFactor& factor : factors) texts.push_back(factor.number.source);
  const std::string title = fmt::format("{} on {} devices of {}", shape.name, plan.devices, cluster->name());
  return JsonObject()
      .add("plan", plan)
      .add("cluster", cluster)
      .add("parameters", shape_parameters(shape))
      .add("data", config.data)
      .add("seconds", seconds)
      .add("tokens_per_second", to_real(config.batch * config.sequence) / seconds)
      .add("mfu", plan.model_flops / (seconds * devices * plan.peak_flops))
      .add("fits", plan.needed() <= plan.available)
      .add("rates", rates)
      .add("factors", factors)
      .add("sources", sources_in(texts))
      .add("waterfall", waterfall_svg(fmt::format("{}: {} a step", title, seconds_text(seconds)), plan))
      .add("memory", memory_svg(title + ": memory by stage", plan));
}

}  // namespace artifex_devices::playground
