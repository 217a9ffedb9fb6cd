// SPDX-License-Identifier: Apache-2.0
// The page's answers from the package's own objects: one question a line of standard input, one answer a line.
#include <iostream>
#include <string>

#include "answers/answer.h"

int main() {
  for (std::string question; std::getline(std::cin, question);) {
    std::cout << artifex_devices::playground::answer_to(question) << '\n';
  }
}
