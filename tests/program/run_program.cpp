// SPDX-License-Identifier: Apache-2.0
#include "tests/program/run_program.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace exact_topk::tests {

std::vector<std::string> Ran::sentences() const {
  std::vector<std::string> lines;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("check_topk: ") ||
        line.starts_with("exact_topk_failing_rank: "))
      lines.push_back(line);
  return lines;
}

Ran run_shell(const std::string& command) {
  const Scratch scratch;
  const std::string script = scratch.path("command"), out = scratch.path("out"),
                    err = scratch.path("err");
  write_text(script, command + "\n");
  const int status =
      std::system(fmt::format("timeout 120 bash '{}' >'{}' 2>'{}' </dev/null",
                              script, out, err)
                      .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          read_text(out), read_text(err)};
}

Ran check(const std::string& arguments) {
  return run_shell(program("check_topk") + " " + arguments);
}

std::string mpirun(int ranks, const std::string& program) {
  return fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun "
      "--oversubscribe -np {} {}",
      ranks, program);
}

Ran check_under_mpirun(int ranks, const std::string& arguments,
                       const std::string& environment) {
  return run_shell(environment + " " + mpirun(ranks, program("check_topk")) +
                   " " + arguments);
}

std::string small() {
  static const Scratch scratch;
  static const std::string path = [] {
    const std::string file = scratch.path("tiny.json");
    write_text(
        file,
        R"({"hidden": 64, "q_lora": 64, "heads": 8, "theta": 10000.0, "k": 64})");
    return file;
  }();
  return "--geometry " + path + " --pos 300 ";
}

Scratch::Scratch() {
  std::string name =
      (std::filesystem::temp_directory_path() / "exact_topk_test.XXXXXX")
          .string();
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("no temporary folder");
  folder_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string program(const std::string& name) {
  return std::string(EXACT_TOPK_BINARY_DIR) + "/bin/" + name;
}
std::string rogue() {
  return std::string(EXACT_TOPK_BINARY_DIR) + "/tests/exact_topk_rogue.so";
}

}  // namespace exact_topk::tests
