// SPDX-License-Identifier: Apache-2.0
//
// Captures made by a test: tensors are set one by one, and any of them may be
// replaced by a wrong one before the file is written.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace exact_topk::harness {

class CaptureFile {
 public:
  CaptureFile() {
    std::string name =
        (std::filesystem::temp_directory_path() / "capture-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    close(descriptor);
    path_ = name;
  }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;
  ~CaptureFile() { std::filesystem::remove(path_); }

  template <typename T>
  CaptureFile& set(const std::string& name, const std::string& dtype,
                   std::vector<int64_t> shape, const std::vector<T>& elements) {
    std::string bytes(elements.size() * sizeof(T), '\0');
    if (!bytes.empty())
      std::memcpy(bytes.data(), elements.data(), bytes.size());
    tensors_[name] = {dtype, std::move(shape), std::move(bytes)};
    return *this;
  }
  CaptureFile& drop(const std::string& name) {
    tensors_.erase(name);
    return *this;
  }
  CaptureFile& meta(const std::string& key, const std::string& value) {
    metadata_[key] = value;
    return *this;
  }

  // Writes the file; an odd byte first, so that no tensor is aligned.
  std::string path() const {
    nlohmann::json header{{"__metadata__", metadata_}};
    std::string data(1, 'x');
    header["a pad"] = {
        {"dtype", "U8"}, {"shape", {1}}, {"data_offsets", {0, 1}}};
    for (const auto& [name, tensor] : tensors_) {
      header[name] = {
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    std::string text = header.dump();
    if (text.size() % 2 != 0) text += ' ';
    uint64_t length = text.size();
    std::string file(reinterpret_cast<const char*>(&length), sizeof length);
    std::ofstream(path_, std::ios::binary) << file << text << data;
    return path_;
  }

 private:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  std::string path_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Two rows of 100 and 3 keys of 110 columns with k = 4: scores of row r rise
// with the column, so that the top 4 of row 0 are 99, 98, 97, 96. Positions.
CaptureFile& selection(CaptureFile& file);
// One row of 130 keys and 2 heads on pages 5, 2, 3 of 6, all of whose scores
// are right: q is 1 in dim 0 of head 0 and in dim 1 of head 1, weights are 1
// and 0.5, key j has the code of 1.0 (0x38) in dim 0 and the scale 2^-(j % 3),
// so that score j is 2^-(j % 3). The list is the base order of k = 4: 0, 3, 6,
// 9, as slots of page 5.
CaptureFile& query_group(CaptureFile& file);

}  // namespace exact_topk::harness
