#include "config/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "config/config_toml.h"
#include "config/text/config_text.h"

namespace clawdforge {
namespace {

// The parser takes its tree down by recursion, one frame for every dot of a dotted key,
// and a file of this size cannot hold enough of them to use up the stack.
constexpr std::size_t kFileBytesMax = 32 * 1024;

std::string_view type_name(const toml::node& node) {
  if (node.is_string()) return "a string";
  if (node.is_integer()) return "a whole number";
  if (node.is_floating_point()) return "a number with a point";
  if (node.is_boolean()) return "true or false";
  if (node.is_array()) return "an array";
  if (node.is_table()) return "a table";
  return "a date or time";
}

// [[budgets]] as the environment's variable has them.
std::optional<std::string> budgets_for(const toml::node& node) {
  const toml::array* const tables = node.as_array();
  if (tables == nullptr) return std::nullopt;
  std::string text;
  for (const toml::node& item : *tables) {
    const toml::table* const budget = item.as_table();
    if (budget == nullptr || budget->size() != 3) return std::nullopt;
    const auto window = (*budget)["window"].value<std::string>();
    const auto unit = (*budget)["unit"].value<std::string>();
    const auto limit = (*budget)["limit"].value<double>();
    if (!window || !unit || !limit) return std::nullopt;
    text += fmt::format("{}{}:{}:{}", text.empty() ? "" : ",", *window, *unit, *limit);
  }
  return text;
}

// The value as a flag would have it, or nothing if it is of the wrong type.
std::optional<std::string> text_for(const KeyRow& row, const toml::node& node) {
  if (row.kind == KeyKind::number) {
    const auto* number = node.as_integer();
    return number == nullptr ? std::nullopt : std::optional(fmt::to_string(number->get()));
  }
  if (row.kind == KeyKind::flag) {
    const auto* flag = node.as_boolean();
    if (flag != nullptr) return flag->get() ? "true" : "false";
  }
  if (const auto* text = node.as_string()) return text->get();
  if (row.name == "budgets") return budgets_for(node);
  if (row.kind != KeyKind::list) return std::nullopt;
  const auto items = strings_of(node);
  // A comma inside an item would make two of it.
  if (!items || std::ranges::any_of(*items, [](const std::string& item) {
        return item.find(',') != std::string::npos;
      })) {
    return std::nullopt;
  }
  return fmt::format("{}", fmt::join(*items, ","));
}

std::vector<std::string> file_keys() {
  std::vector<std::string> names = {"agents", "defaults", "mcp_servers", "workspaces"};
  for (const KeyRow& row : key_rows()) {
    if (row.kind != KeyKind::secret) names.emplace_back(row.name);
  }
  return names;
}

Result<FileValue> read_value(const toml::key& key, const toml::node& node, std::string_view file) {
  const KeyRow* row = find_key(key.str());
  if (row == nullptr) return refuse_unknown_key(key.str(), file, key.source(), file_keys());
  if (row->kind == KeyKind::secret) {
    return refuse_config(fmt::format(
        "{} is not allowed: this secret never stands in the file; set {} or let it be made at "
        "the first start.",
        in_file(row->name, file, key.source()), environment_name(row->name)));
  }
  auto text = text_for(*row, node);
  if (!text) return refuse_type(row->name, file, node, allowed_sentence(*row));
  return FileValue{row, std::move(*text), key.source().begin.line};
}

Result<toml::table> parse_toml(std::string_view toml, std::string_view file) {
  if (toml.size() > kFileBytesMax) {
    return refuse_config(fmt::format("{} is larger than {} bytes.", file, kFileBytesMax));
  }
  try {
    return toml::parse(toml);
  } catch (const toml::parse_error& error) {
    return refuse_config(fmt::format("{} is not valid TOML in line {}: {}.", file,
                                     error.source().begin.line, error.description()));
  } catch (const std::exception& error) {
    return refuse_config(fmt::format("{} cannot be parsed: {}.", file, error.what()));
  }
}

}  // namespace

std::string in_file(std::string_view key, std::string_view file, const toml::source_region& at) {
  return fmt::format("{} in {}, line {},", key, file, at.begin.line);
}

std::unexpected<Failure> refuse_type(std::string_view key, std::string_view file,
                                     const toml::node& node, std::string_view reason) {
  return refuse_config(
      fmt::format("{} is {}: {}", in_file(key, file, node.source()), type_name(node), reason));
}

std::unexpected<Failure> refuse_unknown_key(std::string_view key, std::string_view file,
                                            const toml::source_region& at,
                                            std::span<const std::string> known,
                                            std::string_view common_prefix) {
  return refuse_config(fmt::format("{} is not a known key{}", in_file(in_quotes(key), file, at),
                                   did_you_mean(key, known, common_prefix)));
}

std::optional<std::vector<std::string>> strings_of(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> items;
  for (const toml::node& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) return std::nullopt;
    items.push_back(text->get());
  }
  return items;
}

Result<std::string> read_config_file(const std::string& path) {
  std::string text(kFileBytesMax + 1, '\0');
  FILE* const file = std::fopen(path.c_str(), "rbe");
  int error = file == nullptr ? errno : 0;
  if (file != nullptr) {
    const std::size_t count = std::fread(text.data(), 1, text.size(), file);
    if (std::ferror(file) != 0) error = errno;
    std::fclose(file);
    text.resize(count);
  }
  if (error != 0) {
    const std::error_code reason(error, std::generic_category());
    return refuse_config(
        fmt::format("The configuration file {} cannot be read: {}.", path, reason.message()));
  }
  return text;
}

Result<FileContent> parse_config_file(std::string_view toml, std::string_view file) {
  auto table = parse_toml(toml, file);
  if (!table) return std::unexpected(table.error());
  FileContent content;
  for (const auto& [key, node] : *table) {
    if (key.str() == "agents") {
      auto agents = read_agents(node, file);
      if (!agents) return std::unexpected(agents.error());
      content.agents = std::move(*agents);
      continue;
    }
    if (key.str() == "defaults") {
      auto defaults = read_defaults(node, file);
      if (!defaults) return std::unexpected(defaults.error());
      content.defaults = std::move(*defaults);
      continue;
    }
    if (key.str() == "mcp_servers") {
      auto servers = read_mcp_servers(node, file);
      if (!servers) return std::unexpected(servers.error());
      content.mcp_servers = std::move(*servers);
      continue;
    }
    if (key.str() == "workspaces") {
      auto workspaces = read_workspaces(node, file);
      if (!workspaces) return std::unexpected(workspaces.error());
      content.workspaces = std::move(*workspaces);
      continue;
    }
    auto value = read_value(key, node, file);
    if (!value) return std::unexpected(value.error());
    content.values.push_back(std::move(*value));
  }
  return content;
}

}  // namespace clawdforge
