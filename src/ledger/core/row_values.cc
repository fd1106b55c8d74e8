#include "ledger/core/row_values.h"

#include <cmath>

#include "json/json_check.h"
#include "json/json_parse.h"

namespace clawdforge {
std::optional<std::string> text_in(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<std::int64_t> whole_in(const SqlValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<double> number_in(const SqlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value);
  return real == nullptr || !std::isfinite(*real) ? std::nullopt : std::optional(*real);
}

std::optional<TimePoint> time_in(const SqlValue& value) {
  const auto* second = std::get_if<std::int64_t>(&value);
  if (second == nullptr || *second < 0 || *second > kUnixSecondsMax) return std::nullopt;
  return TimePoint(std::chrono::seconds(*second));
}

std::optional<Digest> digest_in(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  Digest digest;
  if (text == nullptr || text->size() != digest.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && !(c >= 'a' && c <= 'f')) return std::nullopt;
    const auto half = static_cast<unsigned char>(is_digit ? c - '0' : c - 'a' + 10);
    unsigned char& byte = digest[i / 2];
    byte = static_cast<unsigned char>(i % 2 == 0 ? half << 4 : byte | half);
  }
  return digest;
}

std::optional<std::string> json_object_in(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || !is_json_object(*text, kJsonDepthMax)) return std::nullopt;
  return *text;
}

std::optional<std::string> json_array_in(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || !is_json_array(*text, kJsonDepthMax)) return std::nullopt;
  return *text;
}

Result<std::vector<ProcessMark>> marks_in(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<ProcessMark> marks;
  for (const SqlRow& row : result->rows) {
    const auto pid = whole_in(row.at(0));
    const auto start_time = whole_in(row.at(1));
    auto boot_id = text_in(row.at(2));
    if (pid && start_time && boot_id) marks.push_back({*pid, *start_time, std::move(*boot_id)});
  }
  return marks;
}

Result<BytesByApp> bytes_by_app_in(const Result<SqlResult>& result) {
  if (!result) return std::unexpected(result.error());
  BytesByApp bytes;
  for (const SqlRow& row : result->rows) {
    bytes[id_in<AppName>(row.at(0))] = whole_in(row.at(1)).value_or(0);
  }
  return bytes;
}

}  // namespace clawdforge
