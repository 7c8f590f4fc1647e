// SPDX-License-Identifier: Apache-2.0
#include "harness/environment.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <climits>

#include "exact_topk_commit.h"
#include "harness/group.h"

namespace exact_topk::harness {
namespace {

// "0-3,6": the processors that this process may run on.
std::string processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "?";
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first)
                          : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text;
}

}  // namespace

Environment environment() {
  const Group world = Group::world();
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(library, &length);
  std::string mpi(library);
  mpi.resize(std::min(
      mpi.find(','),
      mpi.size()));  // "Open MPI v4.1.4", without the build's particulars

  std::string binding;
  const auto all = world.all_gather(processors());
  for (size_t r = 0; r < all.size(); ++r)
    binding += fmt::format("{}{}:{}", r == 0 ? "" : " ", r, all[r]);
  return {
      host, world.size(), EXACT_TOPK_COMMIT, EXACT_TOPK_COMPILER, mpi, binding,
      {}};
}

}  // namespace exact_topk::harness
