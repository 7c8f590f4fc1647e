// SPDX-License-Identifier: Apache-2.0
//
// A capture (SPEC section 10): tensors that any program saved of its own
// selection, and perhaps of what the scores were computed from, in a
// safetensors file.
//
// The file is mapped and checked whole when it is opened: every dtype and
// shape, every length, window and page id. What is wrong is one
// std::runtime_error sentence that names the file, the tensor (or the metadata)
// and the fault. After that a row is copied out when it is asked for, converted
// without loss, so that a capture of any size needs no more memory than its
// rows in hand. A capture does not change: rows may be read from many threads.
//
// What is not here: nothing is judged. Tensors and metadata of other names are
// ignored; f32 is where every score of the file's formats fits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dumps/safetensors.h"
#include "oracle/contract.h"
#include "oracle/entries.h"
#include "oracle/geometry.h"
#include "oracle/score_format.h"

namespace exact_topk::harness {

class Capture {
 public:
  explicit Capture(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t rows() const { return rows_; }
  int k() const { return k_; }
  // What the capture says that its lists promise.
  oracle::Contract contract() const { return contract_; }
  oracle::ScoreFormat score_format() const { return score_format_; }
  bool entries_are_slots() const { return slots_; }
  // Whether query, head weights and cache are there, and with them the f64
  // reference of the scores.
  bool has_query() const { return heads_ > 0; }
  // Heads, fp8 format and page layout of the capture; the rest is glm53's and
  // of no meaning here.
  oracle::Geometry geometry() const;

  int64_t keys(int64_t row) const { return lengths_[size_t(row)]; }  // n
  int64_t longest() const;  // the most keys of any row
  // The scores of the row's window, n of them.
  std::vector<float> scores(int64_t row) const;
  // The list as saved, k entries.
  std::vector<int64_t> entries(int64_t row) const;
  // The same as positions: -1 is -1, any other entry that names no key of the
  // row is kNoKey.
  static constexpr int32_t kNoKey = oracle::kNoKey;
  std::vector<int32_t> positions(int64_t row) const;
  // The ceil(n / 64) pages of the row; 0, 1, 2 ... without a page table.
  std::vector<int32_t> pages(int64_t row) const;

  // Where has_query(). The query as multiplied, [H * 128], exact in f64.
  std::vector<double> query(int64_t row) const;
  std::vector<float> head_weights(int64_t row) const;    // [H]
  std::span<const uint8_t> cache() const;                // [pages][8448]
  float key_scale(int64_t row, int64_t position) const;  // as cached

 private:
  using Entry = dumps::SafetensorsEntry;

  [[noreturn]] void fail(const std::string& fault) const;
  const Entry* find(std::string_view name) const;
  // The tensor, of one of the dtypes and of the shape; a dimension of -1 may be
  // anything.
  const Entry& require(std::string_view name,
                       std::span<const std::string_view> dtypes,
                       std::span<const int64_t> shape) const;
  int choice(std::string_view key,
             std::span<const std::string_view> words) const;
  std::vector<int64_t> integers(std::string_view name) const;
  void read_metadata();
  void check_selection();
  void check_pages();
  void check_query();
  void check_query_group() const;

  std::string path_;                    // as given
  dumps::Safetensors file_;             // owns every byte
  int64_t rows_ = 0;                    // R
  int64_t columns_ = 0;                 // S
  int k_ = 0;                           // entries of a list
  oracle::ScoreFormat score_format_{};  // of scores
  oracle::Contract contract_{};         // metadata
  bool slots_ = false;                  // metadata: entries are slots
  oracle::Fp8 fp8_{};                   // metadata, of the cache
  oracle::PageLayout layout_{};         // metadata, of the cache
  std::vector<int64_t> lengths_;        // [R]
  std::vector<int64_t> starts_;         // [R], zeros where there is no tensor
  int64_t table_width_ = 0;             // M; 0: no page table
  int heads_ = 0;                       // H; 0: no query
};

}  // namespace exact_topk::harness
