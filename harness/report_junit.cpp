// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.h"

#include <fmt/format.h>

namespace exact_topk::harness {
namespace {

// XML 1.0 has no way to write most control characters: they become '?'.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

}  // namespace

std::string report_junit(const Report& report) {
  const Counts n = count(report);
  const bool error = !report.error.empty();
  const auto failed = n.failed + (report.allow_mistrusted ? 0 : n.mistrusted);
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format(
      "<testsuites>\n<testsuite name=\"check_topk\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n",
      n.cases + (error ? 1 : 0), failed, error ? 1 : 0, n.skipped,
      report.seconds);
  for (const CaseResult& c : report.cases) {
    xml +=
        fmt::format("<testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">",
                    escape(report.candidate.name), escape(c.name), c.seconds);
    const bool fails =
        c.verdict == Outcome::kFailed ||
        (c.verdict == Outcome::kMistrusted && !report.allow_mistrusted);
    if (fails)
      xml +=
          fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>",
                      to_string(c.verdict), escape(c.reason), escape(c.repro));
    else if (c.verdict == Outcome::kSkipped)
      xml += fmt::format("<skipped message=\"{}\"/>", escape(c.reason));
    xml += "</testcase>\n";
  }
  if (error)
    xml += fmt::format(
        "<testcase classname=\"check_topk\" name=\"run\"><error "
        "message=\"{}\"/></testcase>\n",
        escape(report.error));
  return xml + "</testsuite>\n</testsuites>\n";
}

}  // namespace exact_topk::harness
