// SPDX-License-Identifier: Apache-2.0
//
// Running programs of the build tree as a user would, and what they did.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace exact_topk::tests {

struct Ran {
  int status;  // exit status; 124 where it had to be ended after two minutes
  std::string out;  // standard output
  std::string err;  // standard error
  // Lines of standard error that the program wrote, mpirun's own remarks left
  // out.
  std::vector<std::string> sentences() const;
};

// A shell command line; `environment` stands before it ("NAME=value ...").
Ran run_shell(const std::string& command);
// check_topk alone, with this text behind it.
Ran check(const std::string& arguments);
// check_topk under `mpirun -np ranks`, with `environment` ("NAME=value ...")
// for it.
Ran check_under_mpirun(int ranks, const std::string& arguments,
                       const std::string& environment = "");
// The words that run `program` under mpirun with as many ranks as it is told.
std::string mpirun(int ranks, const std::string& program);

// A small geometry and few positions, so that a case takes milliseconds:
// options that every quick run begins with.
std::string small();
// A folder that is gone when the object is.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

 private:
  std::filesystem::path folder_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
std::string program(const std::string& name);  // bin/NAME of the build tree
std::string rogue();                           // the misbehaving plug-in

}  // namespace exact_topk::tests
