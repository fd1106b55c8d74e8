// Reading values of rows that another program may have written: what is not of the
// expected kind counts as absent, so that one odd row cannot hide the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/secret.h"
#include "ledger/sql_driver.h"

namespace clawdforge {

// The last second of the year 9999: beyond it a time is a mistake, and would overflow.
inline constexpr std::int64_t kUnixSecondsMax = 253'402'300'799;

std::optional<std::string> text_in(const SqlValue& value);
std::optional<std::int64_t> whole_in(const SqlValue& value);
std::optional<double> number_in(const SqlValue& value);
std::optional<TimePoint> time_in(const SqlValue& value);
// One spelling only, lower case: two rows must not hold the same digest in different letters.
std::optional<Digest> digest_in(const SqlValue& value);

// An absent one becomes NULL.
template <class T>
SqlValue sql_value(const std::optional<T>& value) {
  return value ? SqlValue(*value) : SqlValue();
}

}  // namespace clawdforge
