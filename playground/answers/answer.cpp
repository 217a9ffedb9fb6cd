// SPDX-License-Identifier: Apache-2.0
#include "answer.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::playground {
namespace {

JsonObject answered(const Question& question) {
  const std::string kind = question.text("question");
  if (kind == "sharding") return sharding_answer(question);
  if (kind == "reshard") return reshard_answer(question);
  if (kind == "training") return training_answer(question);
  throw_error("question: {:?} is not a question; expected sharding, reshard or training; correct it", kind);
}

JsonObject failed(const Error& error, const char* raises) {
  return JsonObject().add("error", std::string(error.what())).add("raises", std::string(raises));
}

}  // namespace

std::string answer_to(std::string_view question) {
  try {
    return answered(Question(question)).text();
  } catch (const InvalidArgument& error) {
    return failed(error, "ValueError").text();
  } catch (const Error& error) {
    return failed(error, "RuntimeError").text();
  }
}

}  // namespace artifex_devices::playground

/// The page's call. Returns text that is valid until the next call.
extern "C" const char* answer(const char* question) {
  static std::string text;
  text = artifex_devices::playground::answer_to(question);
  return text.c_str();
}
