// SPDX-License-Identifier: Apache-2.0
#include "harness/together.h"

#include "dumps/sentence.h"
#include "harness/loader.h"
#include "harness/status.h"

namespace exact_topk::harness {

int status_of(const std::exception& error) {
  const auto* candidate = dynamic_cast<const CandidateError*>(&error);
  return candidate != nullptr && candidate->status == XTK_NO_DEVICE
             ? kNoDeviceStatus
             : kErrorStatus;
}

void together(const Group& world, const std::function<void()>& step) {
  int status = 0;
  std::string sentence;
  try {
    step();
  } catch (const std::exception& error) {
    status = status_of(error);
    sentence = dumps::sentence_of(error);
  }
  const auto statuses = world.all_gather(std::to_string(status));
  const auto sentences = world.all_gather(sentence);
  for (size_t r = 0; r < statuses.size(); ++r)
    if (statuses[r] != "0") throw Ended{std::stoi(statuses[r]), sentences[r]};
}

}  // namespace exact_topk::harness
