#include "offline/ledger_file.h"

#include <fmt/format.h>

namespace clawdforge {

Result<LedgerArguments> split_arguments(const std::vector<std::string>& arguments) {
  LedgerArguments split;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.starts_with("--")) {
      split.flags.push_back(argument);
      const bool has_value_behind = argument.find('=') == argument.npos &&
                                    i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
      if (has_value_behind) split.flags.push_back(arguments[++i]);
    } else if (split.file || argument.empty()) {
      return fail(Errc::invalid, "usage", "There can be one FILE, and its name is not empty.");
    } else {
      split.file = argument;
    }
  }
  return split;
}

Result<std::string> sqlite_path(const std::string& url) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with("postgresql:") || url.starts_with("postgres:")) {
    return fail(Errc::invalid, "ledger_unsupported",
                "The ledger is a PostgreSQL database; this command works on SQLite files, and "
                "pg_dump makes a copy of the other.");
  }
  if (!url.starts_with(kSqlite)) {
    return fail(Errc::invalid, "ledger_unsupported",
                "The ledger must be sqlite:PATH or postgresql://….");
  }
  return url.substr(kSqlite.size());
}

}  // namespace clawdforge
