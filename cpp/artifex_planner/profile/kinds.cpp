// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/profile/kinds.h"

#include <utility>

#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {
namespace {

template <typename Values>
double& of_traffic(Values& values, Traffic traffic, size_t message) {
  return values[static_cast<size_t>(traffic)][message];
}

void add_computation(KindSeconds& sum, const StageWork& work, const TrainingConfig& config, double layer_seconds) {
  const double m = to_real(config.microbatches());
  for (size_t i = 0; i < work.passes.size(); ++i) {
    const PassSeconds& pass = work.passes[i];
    const bool is_backward = i == 1;
    const double products = pass.attention - pass.scores;
    const ProfileKind attention = !config.flash_attention ? ProfileKind::kProducts
                                  : is_backward           ? ProfileKind::kAttentionBackward
                                                          : ProfileKind::kAttentionForward;
    at(sum.kinds, attention) += m * products;
    at(sum.kinds, ProfileKind::kProducts) += m * pass.products;
    at(sum.kinds, ProfileKind::kElementwise) += m * (pass.elementwise + pass.scores);
    if (layer_seconds > 0) sum.layer_passes += m * pass.fixed / layer_seconds;
  }
  if (!config.offload_optimizer) at(sum.kinds, ProfileKind::kElementwise) += work.update;
  at(sum.kinds, ProfileKind::kHost) = work.offload;
}

}  // namespace

KindPricer::KindPricer(const TransformerShape& shape, const Cluster& cluster, TrainingConfig config, int64_t stage)
    : model_(training_model(shape)),
      config_(std::move(config)),
      stage_(stage),
      hardware_(training_hardware(cluster)),
      links_(kMessageCount, TrainingLinks(cluster)) {
  for (size_t i = 0; i < links_.size(); ++i) links_[i].count_only(static_cast<MessageKind>(i));
}

KindSeconds KindPricer::seconds(const Efficiency& efficiency) {
  KindSeconds sum;
  Efficiency with_layers = efficiency;  // to count how often it is taken
  double& layer_seconds = with_layers.factors[static_cast<size_t>(Factor::kLayerSeconds)].value;
  if (layer_seconds <= 0) layer_seconds = 1;
  const double m = to_real(config_.microbatches());
  for (size_t message = 0; message < links_.size(); ++message) {
    StepPricer pricer(model_, hardware_, links_[message], with_layers);
    const StageWork work = pricer.work(config_, stage_);
    if (message == 0) add_computation(sum, work, config_, layer_seconds);
    for (const PassSeconds& pass : work.passes) {
      of_traffic(sum.messages, Traffic::kTensor, message) += m * (pass.tensor + pass.tensor_beside);
      of_traffic(sum.messages, Traffic::kContext, message) += m * pass.context;
      of_traffic(sum.messages, Traffic::kExpert, message) += m * pass.expert;
      sum.tensor_beside += m * pass.tensor_beside;
    }
    of_traffic(sum.messages, Traffic::kPipeline, message) = m * work.sends;
    of_traffic(sum.messages, Traffic::kData, message) = work.data;
    for (const auto& traffic : sum.messages) {
      at(sum.kinds, profile_kind(static_cast<MessageKind>(message))) += traffic[message];
    }
  }
  return sum;
}

}  // namespace artifex_devices::planner
