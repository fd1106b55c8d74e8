#include "api/admin/export_stream.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/clock.h"
#include "base/version.h"
#include "http/message/accepted.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace {

// A spreadsheet takes a cell that begins so for a formula.
bool looks_like_formula(std::string_view cell) {
  return !cell.empty() && std::string_view("=+-@\t\r").find(cell.front()) != std::string_view::npos;
}

void append_cell(std::string& out, const boost::json::value* value) {
  if (value == nullptr || value->is_null()) return;
  std::string cell;
  if (value->is_string()) {
    cell = value->get_string();
    if (looks_like_formula(cell)) cell.insert(0, 1, '\'');
  } else {
    cell = boost::json::serialize(*value);
  }
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    out += cell;
    return;
  }
  out += '"';
  for (const char c : cell) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_csv_row(std::string& out, std::string_view row,
                    std::span<const std::string_view> columns) {
  const auto parsed = parse_json(row, kJournalJsonDepthMax);
  const boost::json::object* const object = parsed ? parsed->if_object() : nullptr;
  for (const std::string_view& column : columns) {
    if (&column != columns.data()) out += ',';
    append_cell(out, object == nullptr ? nullptr : object->if_contains(column));
  }
  out += "\r\n";
}

// What the file is, for the person who finds it later.
std::string first_line(const Export& wanted) {
  std::string told = "{";
  append_member(told, "export", wanted.what);
  append_member(told, "filter", wanted.filter);
  append_member(told, "at", SystemClock().now());
  append_member(told, "version", kVersion);
  told += '}';
  if (wanted.form == ExportForm::ndjson) return told + "\n";
  std::string out = fmt::format("# {}\r\n", told);
  for (const std::string_view& column : wanted.columns) {
    if (&column != wanted.columns.data()) out += ',';
    out += column;
  }
  return out + "\r\n";
}

Async<void> write_export(Export wanted, BodyWriter* writer) {
  std::string out = first_line(wanted);
  std::optional<std::string> cursor;
  std::size_t count = 0;
  do {
    auto page = co_await wanted.next(std::move(cursor));
    if (!page) co_return std::unexpected(std::move(page.error()));
    for (const std::string& row : page->rows) {
      if (wanted.form == ExportForm::csv) {
        append_csv_row(out, row, wanted.columns);
      } else {
        out.append(row).append("\n");
      }
    }
    count += page->rows.size();
    cursor = std::move(page->next_cursor);
    if (cursor && count >= kExportRowsMax) {
      out += wanted.form == ExportForm::csv ? "# there are more\r\n" : "{\"truncated\":true}\n";
      cursor.reset();
    }
    auto written = co_await writer->write(std::exchange(out, {}));
    if (!written) co_return written;
  } while (cursor);
  co_return Result<void>{};
}

}  // namespace

std::optional<ExportForm> export_form_of(const Request& request) {
  const std::string_view accept = request.header("Accept").value_or("");
  if (accepts_type(accept, "text/csv")) return ExportForm::csv;
  if (accepts_type(accept, "application/x-ndjson")) return ExportForm::ndjson;
  return std::nullopt;
}

Response export_response(Export wanted) {
  Response response;
  const bool is_csv = wanted.form == ExportForm::csv;
  response.content_type = is_csv ? "text/csv; charset=utf-8" : "application/x-ndjson";
  response.headers.emplace_back(
      "Content-Disposition", fmt::format(R"(attachment; filename="clawdforge-{}.{}")", wanted.what,
                                         is_csv ? "csv" : "ndjson"));
  response.stream = [wanted = std::move(wanted)](BodyWriter* writer) mutable {
    return write_export(std::move(wanted), writer);
  };
  return response;
}

}  // namespace clawdforge
