// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "json_writer.h"
#include "question.h"

namespace artifex_devices::playground {

/// Which device holds which part of an array, and its picture. Fields: mesh, shape, dtype, spec; chip, pod, nodes.
JsonObject sharding_answer(const Question& question);

/// What a reshard sends. Fields: those of sharding_answer, and to_spec; with a to_mesh the destination has other axes.
JsonObject reshard_answer(const Question& question);

/// Memory and seconds of a training step. Fields: model (a TransformerShape), chip, pod, nodes and the numbers of
/// TrainingConfig that the page has.
JsonObject training_answer(const Question& question);

/// The answer to a question as JSON: {"question": "sharding", "mesh": ...}. An error of the library is an answer too:
/// {"error": the text, "raises": the name of the exception in Python}.
std::string answer_to(std::string_view question);

}  // namespace artifex_devices::playground
