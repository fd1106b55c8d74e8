// Reading values of rows that another program may have written: what is not of the
// expected kind counts as absent, so that one odd row cannot hide the others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/secret.h"
#include "ledger/core/sql_driver.h"
#include "model/run.h"

namespace clawdforge {

// The last second of the year 9999: beyond it a time is a mistake, and would overflow.
inline constexpr std::int64_t kUnixSecondsMax = 253'402'300'799;

std::optional<std::string> text_in(const SqlValue& value);
// An id as it stands there; what is not text is an empty one.
template <class Id>
Id id_in(const SqlValue& value) {
  return Id(text_in(value).value_or(""));
}
std::optional<std::int64_t> whole_in(const SqlValue& value);
std::optional<double> number_in(const SqlValue& value);
std::optional<TimePoint> time_in(const SqlValue& value);
// One spelling only, lower case: two rows must not hold the same digest in different letters.
std::optional<Digest> digest_in(const SqlValue& value);

// JSON text of an object, or of an array, as it was written.
std::optional<std::string> json_object_in(const SqlValue& value);
std::optional<std::string> json_array_in(const SqlValue& value);

// One of the numbers of a usage. Reading leaves no usage where no column of it holds a number.
template <std::int64_t Usage::* kTokens>
void read_tokens(std::optional<Usage>& usage, const SqlValue& value) {
  const auto number = whole_in(value);
  if (!number) return;
  if (!usage) usage.emplace();
  (*usage).*kTokens = *number;
}
template <std::int64_t Usage::* kTokens>
SqlValue tokens_value(const std::optional<Usage>& usage) {
  return usage ? SqlValue((*usage).*kTokens) : SqlValue();
}

// Of rows with three columns: pid, start time and boot id. Half a mark is left out.
Result<std::vector<ProcessMark>> marks_in(Result<SqlResult> result);

// Of rows with two columns: an app's name and a sum of bytes.
using BytesByApp = std::map<AppName, std::int64_t>;
Result<BytesByApp> bytes_by_app_in(const Result<SqlResult>& result);

// An absent one becomes NULL.
template <class T>
SqlValue sql_value(const std::optional<T>& value) {
  return value ? SqlValue(*value) : SqlValue();
}
// So does an empty text, where that means that there is none.
inline SqlValue text_or_null(const std::string& text) {
  return text.empty() ? SqlValue() : SqlValue(text);
}

}  // namespace clawdforge
