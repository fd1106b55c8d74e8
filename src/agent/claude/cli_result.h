// Reads the result that an agent's command line prints: one JSON object of type "result",
// usually one line. Pure: it is fed with pieces of output as they come.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/failure/api_failure.h"
#include "model/run.h"

namespace clawdforge {

// Of all output; a program that writes more has failed.
inline constexpr std::size_t kResultBytesMax = 32 * 1024 * 1024;

struct CliResult {
  bool is_error = false;
  std::string text;        // the answer, or what went wrong; valid UTF-8
  std::string structured;  // JSON text of the answer by a schema; empty: there is none
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::vector<Denial> denials;
  // How the command line itself tells its errors apart; empty where it does not say.
  std::string subtype;
  std::string terminal_reason;
  std::string api_error;
  std::string api_error_type;
  std::optional<int> api_status;

  // What went wrong, of an error.
  FailureReport report() const;
  bool operator==(const CliResult&) const = default;
};

// None: the object is not a result.
std::optional<CliResult> cli_result_in(const boost::json::object& object);

class ResultReader {
 public:
  // Other lines are skipped. True: the result is there, or cannot come any more because
  // there is too much output; nothing more needs to be fed. How the output is cut into
  // pieces makes no difference.
  bool feed(std::string_view piece);
  // The output has ended. A last line without its end counts; without any result line,
  // the output as a whole may be the result, or a list that ends in it.
  void finish();

  const std::optional<CliResult>& result() const { return result_; }
  bool is_too_large() const { return is_too_large_; }
  bool has_output() const;  // anything but white space
  std::size_t held_bytes() const { return output_.size(); }

 private:
  void take_line(std::string_view line);

  std::string output_;
  std::size_t line_begin_ = 0;
  std::size_t searched_ = 0;  // up to here there is no end of the line
  std::optional<CliResult> result_;
  bool is_too_large_ = false;
};

}  // namespace clawdforge
