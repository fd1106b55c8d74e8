// A list of the audit as a file: CSV, or one JSON object a line. It is written page by page while
// it is read, so that its length costs no memory.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/async/async.h"
#include "http/message/request.h"
#include "http/message/response.h"

namespace clawdforge {

enum class ExportForm { csv, ndjson };

// By the request's Accept; none: it wants the page as JSON.
std::optional<ExportForm> export_form_of(const Request& request);

struct ExportPage {
  std::vector<std::string> rows;  // JSON text of an object each
  std::optional<std::string> next_cursor;
};

struct Export {
  ExportForm form = ExportForm::ndjson;
  std::string what;                           // the list: "runs"
  std::string filter;                         // the request's query, as it came
  std::span<const std::string_view> columns;  // of CSV: members of the rows
  // The page after a cursor. Outlived by nothing that it refers to.
  std::function<Async<ExportPage>(std::optional<std::string> cursor)> next;
};

// Rows of one file; the last line says so where there are more.
inline constexpr std::size_t kExportRowsMax = 100'000;

Response export_response(Export wanted);

}  // namespace clawdforge
