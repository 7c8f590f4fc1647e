// SPDX-License-Identifier: Apache-2.0
//
// exact_topk.hpp - exact_topk.h for C++17 and later: containers for pointers
// and counts, exceptions for statuses, values for outputs.
//
//   std::vector<float> scores; std::vector<int32_t> list;
//   const auto verdict = exact_topk::check_list(scores, list, 2048);
//   if (!verdict) std::cerr << verdict.sentence << '\n';
//
// Containers are anything with std::data and std::size: vector, array, span.
// What only the C structures can say (f16, slots through a page table, NaN
// last) is said there: row() and list() make one from a container, whose memory
// must outlive it.
#ifndef EXACT_TOPK_EXACT_TOPK_HPP
#define EXACT_TOPK_EXACT_TOPK_HPP

#include <exact_topk/exact_topk.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace exact_topk {

// Any status but EXACT_TOPK_OK; what() is the library's sentence.
class Error : public std::runtime_error {
 public:
  Error(exact_topk_status status, const char* sentence)
      : std::runtime_error(sentence), status_(status) {}
  exact_topk_status status() const noexcept { return status_; }

 private:
  exact_topk_status status_;  // of the call
};

// True where the check held.
struct Verdict : exact_topk_result {
  std::string sentence;  // what is wrong; empty where it held
  explicit operator bool() const noexcept { return held != 0; }
};

namespace detail {

template <typename T>
constexpr std::int32_t dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return EXACT_TOPK_F32;
  else if constexpr (std::is_same_v<T, double>)
    return EXACT_TOPK_F64;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return EXACT_TOPK_U8;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> &&
                     (sizeof(T) == 4 || sizeof(T) == 8))
    return sizeof(T) == 4 ? EXACT_TOPK_I32 : EXACT_TOPK_I64;
  else
    static_assert(!sizeof(T), "exact_topk has no dtype for this type");
}

template <typename Container>
using Element = std::remove_cv_t<
    std::remove_pointer_t<decltype(std::data(std::declval<Container&>()))>>;

// Calls `call(sentence, bytes)`; gives the sentence.
template <typename Call>
std::string checked(Call call) {
  char sentence[EXACT_TOPK_SENTENCE_BYTES] = "";
  const exact_topk_status status = call(sentence, sizeof sentence);
  if (status != EXACT_TOPK_OK) throw Error(status, sentence);
  return sentence;
}

// Calls `check(result, sentence, bytes)`.
template <typename Check>
Verdict verdict_of(Check check) {
  Verdict verdict{};
  verdict.struct_size = sizeof(exact_topk_result);
  verdict.sentence = checked([&](char* sentence, std::size_t bytes) {
    return check(&verdict, sentence, bytes);
  });
  return verdict;
}

}  // namespace detail

template <typename Container>
exact_topk_scores row(const Container& scores) {
  static_assert(std::is_same_v<detail::Element<const Container>, float>,
                "scores are float; say other formats in exact_topk_scores");
  exact_topk_scores made{};
  made.struct_size = sizeof made;
  made.dtype = EXACT_TOPK_F32;
  made.data = std::data(scores);
  made.n = static_cast<std::int64_t>(std::size(scores));
  return made;
}

template <typename Container>
exact_topk_list list(const Container& entries, std::int32_t k,
                     exact_topk_contract contract = EXACT_TOPK_SET) {
  exact_topk_list made{};
  made.struct_size = sizeof made;
  made.dtype = detail::dtype_of<detail::Element<const Container>>();
  made.entries = std::data(entries);
  made.count = static_cast<std::int64_t>(std::size(entries));
  made.k = k;
  made.contract = contract;
  return made;
}

inline Verdict check_list(const exact_topk_scores& scores,
                          const exact_topk_list& list) {
  return detail::verdict_of(
      [&](exact_topk_result* result, char* sentence, std::size_t bytes) {
        return exact_topk_check_list(&scores, &list, result, sentence, bytes);
      });
}

template <typename Scores, typename Entries>
Verdict check_list(const Scores& scores, const Entries& entries, std::int32_t k,
                   exact_topk_contract contract = EXACT_TOPK_SET) {
  return check_list(row(scores), list(entries, k, contract));
}

inline Verdict check_scores(const exact_topk_scores& scores,
                            const exact_topk_source& source,
                            double bound = 1e-4) {
  return detail::verdict_of(
      [&](exact_topk_result* result, char* sentence, std::size_t bytes) {
        return exact_topk_check_scores(&scores, &source, bound, result,
                                       sentence, bytes);
      });
}

inline Verdict check_list_f64(const exact_topk_source& source,
                              const exact_topk_list& list,
                              double bound = 1e-4) {
  return detail::verdict_of(
      [&](exact_topk_result* result, char* sentence, std::size_t bytes) {
        return exact_topk_check_list_f64(&source, &list, bound, result,
                                         sentence, bytes);
      });
}

inline std::vector<double> scores_f64(const exact_topk_source& source) {
  std::vector<double> scores(
      static_cast<std::size_t>(std::max<std::int64_t>(source.keys, 0)));
  detail::checked([&](char* sentence, std::size_t bytes) {
    return exact_topk_scores_f64(&source, scores.data(), sentence, bytes);
  });
  return scores;
}

inline std::vector<std::int32_t> list_f64(const exact_topk_source& source,
                                          std::int32_t k) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(
      std::max<std::int64_t>(std::min<std::int64_t>(source.keys, k), 0)));
  detail::checked([&](char* sentence, std::size_t bytes) {
    return exact_topk_list_f64(&source, k, positions.data(), sentence, bytes);
  });
  return positions;
}

inline std::string digest(const exact_topk_tensor& tensor) {
  char hex[EXACT_TOPK_DIGEST_BYTES] = "";
  detail::checked([&](char* sentence, std::size_t bytes) {
    return exact_topk_digest(&tensor, hex, sentence, bytes);
  });
  return hex;
}

// Of a tensor of one dimension.
template <typename Container>
std::string digest(const Container& elements) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(std::size(elements))};
  exact_topk_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = detail::dtype_of<detail::Element<const Container>>();
  tensor.data = std::data(elements);
  tensor.shape = shape;
  tensor.dimensions = 1;
  return digest(tensor);
}

}  // namespace exact_topk

#endif
