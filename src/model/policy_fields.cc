#include "model/policy_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <utility>

namespace clawdforge {
namespace json = boost::json;
namespace {

std::string_view text_in(const json::value& value) {
  const json::string& text = value.get_string();
  return {text.data(), text.size()};
}

// Calls `take` with each string of the list, until it says false. False: something is wrong.
template <class Take>
bool each_text(const json::value& value, Take take) {
  const json::array* const list = value.if_array();
  return list != nullptr && !list->empty() && list->size() <= kPolicyListMax &&
         std::ranges::all_of(*list, [&](const json::value& item) {
           return item.is_string() && take(text_in(item));
         });
}

template <class T>
bool holds(const std::vector<T>& list, const auto& entry) {
  return std::ranges::find(list, entry) != list.end();
}

// Of memory_max: less than any agent needs to start. Of pids_max likewise.
constexpr std::int64_t kTreeMemoryMin = 16LL << 20;
constexpr std::int64_t kTreePidsMin = 8;
constexpr std::int64_t kTreeMemoryBytesMax = 1LL << 50;

bool is_policy_name(std::string_view text) {
  return !text.empty() && text.size() <= kPolicyNameBytesMax &&
         std::ranges::all_of(text,
                             [](unsigned char c) { return c >= 0x20 && c < 0x7F && c != ','; });
}

// A star stands at the end or nowhere.
bool is_model_pattern(std::string_view text) {
  return is_policy_name(text) && !text.substr(0, text.size() - 1).contains('*');
}

template <auto Member>
std::string set_names(Policy& policy, const json::value& value, bool (*is_good)(std::string_view),
                      std::string_view what) {
  policy.*Member = std::nullopt;
  if (value.is_null()) return {};
  std::vector<std::string> names;
  const bool is_list = each_text(value, [&](std::string_view name) {
    if (!is_good(name)) return false;
    if (!holds(names, name)) names.emplace_back(name);
    return true;
  });
  if (!is_list) {
    return fmt::format("must be a list of 1 to {} {}", kPolicyListMax, what);
  }
  policy.*Member = std::move(names);
  return {};
}

std::string set_agents(Policy& policy, const json::value& value) {
  return set_names<&Policy::agents>(policy, value, is_policy_name, "names of agents");
}

std::string set_models(Policy& policy, const json::value& value) {
  return set_names<&Policy::models>(policy, value, is_model_pattern,
                                    "names of models, each with or without a * at its end");
}

bool is_workspace_entry(std::string_view text) {
  return text == "*" || (is_policy_name(text) && !text.contains('*'));
}

std::string set_workspaces(Policy& policy, const json::value& value) {
  return set_names<&Policy::workspaces>(policy, value, is_workspace_entry,
                                        "names of workspaces, or * for all");
}

template <auto Member>
std::string set_choice(Policy& policy, const json::value& value, auto from,
                       std::string_view allowed) {
  policy.*Member = std::nullopt;
  if (value.is_null()) return {};
  if (value.is_string()) policy.*Member = from(text_in(value));
  return policy.*Member ? "" : fmt::format("must be {}", allowed);
}

std::string set_mode_max(Policy& policy, const json::value& value) {
  return set_choice<&Policy::permission_mode_max>(policy, value, permission_mode_from,
                                                  "deny_all, approve_reads, ask or approve_all");
}

std::string set_mcp(Policy& policy, const json::value& value) {
  return set_choice<&Policy::mcp>(policy, value, mcp_access_from, "none, named, http or any");
}

std::string set_jail(Policy& policy, const json::value& value) {
  return set_choice<&Policy::jail>(policy, value, jail_mode_from, "off, auto, files or full");
}

std::string set_net(Policy& policy, const json::value& value) {
  return set_choice<&Policy::net>(policy, value, net_mode_from, "open, proxy or none");
}

std::string set_net_allow(Policy& policy, const json::value& value) {
  return set_names<&Policy::net_allow>(policy, value, is_net_target,
                                       "targets like api.example.org:443 or *.example.org:443");
}

// A number, or a text of one, which may end in KiB, MiB, GiB or TiB where `has_units`.
std::optional<std::int64_t> number_in(const json::value& value, bool has_units) {
  if (const std::int64_t* const number = value.if_int64()) return *number;
  if (!value.is_string()) return std::nullopt;
  std::string_view text = text_in(value);
  std::int64_t unit = 1;
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  for (std::size_t i = 0; has_units && i < kUnits.size(); ++i) {
    if (!text.ends_with(kUnits[i])) continue;
    text.remove_suffix(kUnits[i].size());
    unit = std::int64_t{1} << (10 * (i + 1));
    break;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || end != text.end() || number > kTreeMemoryBytesMax / unit) {
    return std::nullopt;
  }
  return number * unit;
}

template <auto Member>
std::string set_limit(Policy& policy, const json::value& value, std::int64_t min, std::int64_t max,
                      std::string_view allowed, bool has_units = false) {
  policy.*Member = std::nullopt;
  if (value.is_null()) return {};
  const auto number = number_in(value, has_units);
  if (!number || *number < min || *number > max) return fmt::format("must be {}", allowed);
  policy.*Member = *number;
  return {};
}

std::string set_memory_max(Policy& policy, const json::value& value) {
  return set_limit<&Policy::memory_max>(policy, value, kTreeMemoryMin, kTreeMemoryBytesMax,
                                        "a number of bytes from 16MiB on, such as 3GiB", true);
}

std::string set_pids_max(Policy& policy, const json::value& value) {
  return set_limit<&Policy::pids_max>(policy, value, kTreePidsMin, 4'000'000,
                                      "a whole number from 8 to 4000000");
}

std::string set_cpu_max(Policy& policy, const json::value& value) {
  return set_limit<&Policy::cpu_max_percent>(policy, value, 1, 100'000,
                                             "a whole number from 1 to 100000");
}

template <auto Member>
std::string set_paths(Policy& policy, const json::value& value) {
  return set_names<Member>(policy, value, is_jail_path,
                           "paths that begin with / or ~/; not /, /proc or /dev");
}

template <auto Member>
std::string set_prefixes(Policy& policy, const json::value& value) {
  policy.*Member = std::nullopt;
  if (value.is_null()) return {};
  std::vector<WebAddress> prefixes;
  std::string wrong = fmt::format(
      "must be a list of 1 to {} addresses that begin with http:// or https://", kPolicyListMax);
  const bool is_list = each_text(value, [&](std::string_view text) {
    auto prefix = WebAddress::parse(text);
    if (!prefix) wrong = "has an address that cannot be used: " + prefix.error().message;
    if (prefix && !prefix->query.empty()) wrong = "must not have a question mark in an address";
    if (!prefix || !prefix->query.empty()) return false;
    if (!holds(prefixes, *prefix)) prefixes.push_back(std::move(*prefix));
    return true;
  });
  if (!is_list) return wrong;
  policy.*Member = std::move(prefixes);
  return {};
}

template <auto Member>
json::value show_names(const Policy& policy) {
  const auto& names = policy.*Member;
  if (!names) return nullptr;
  return json::array(names->begin(), names->end());
}

template <auto Member>
json::value show_choice(const Policy& policy) {
  const auto& choice = policy.*Member;
  if (!choice) return nullptr;
  const std::string_view name = name_of(*choice);
  return json::string(name.data(), name.size());
}

template <auto Member>
json::value show_limit(const Policy& policy) {
  const auto& limit = policy.*Member;
  if (!limit) return nullptr;
  return *limit;
}

template <auto Member>
json::value show_prefixes(const Policy& policy) {
  const auto& prefixes = policy.*Member;
  if (!prefixes) return nullptr;
  json::array list;
  for (const WebAddress& prefix : *prefixes) list.emplace_back(prefix.text());
  return list;
}

// What both lists allow. `covers(a, b)`: a allows all that b does. Two entries of which neither
// covers the other allow nothing in common: they are exact, or prefixes.
template <class T, class Covers>
void narrow_list(std::optional<std::vector<T>>& list, const std::optional<std::vector<T>>& by,
                 Covers covers) {
  if (!by) return;
  if (!list) {
    list = by;
    return;
  }
  std::vector<T> common;
  const auto add = [&](const T& entry) {
    if (!holds(common, entry)) common.push_back(entry);
  };
  for (const T& ours : *list) {
    for (const T& theirs : *by) {
      if (covers(theirs, ours)) {
        add(ours);
      } else if (covers(ours, theirs)) {
        add(theirs);
      }
    }
  }
  list = std::move(common);
}

template <auto Member>
void narrow_choice(Policy& policy, const Policy& by) {
  const auto& limit = by.*Member;
  if (!limit) return;
  policy.*Member = std::min((policy.*Member).value_or(*limit), *limit);
}

// The other way round than with what is allowed: a later mode is stricter.
void narrow_jail(Policy& policy, const Policy& by) {
  if (by.jail) policy.jail = std::max(policy.jail.value_or(*by.jail), *by.jail);
}

void narrow_net(Policy& policy, const Policy& by) {
  if (by.net) policy.net = std::max(policy.net.value_or(*by.net), *by.net);
}

template <auto Member>
void join_paths(Policy& policy, const Policy& by) {
  const auto& more = by.*Member;
  if (!more) return;
  auto& paths = policy.*Member;
  if (!paths) paths.emplace();
  for (const std::string& path : *more) {
    if (!holds(*paths, path)) paths->push_back(path);
  }
}

void narrow_agents(Policy& policy, const Policy& by) {
  narrow_list(policy.agents, by.agents, std::equal_to<>());
}

// A pattern covers another one if it matches the other's text, star and all.
void narrow_models(Policy& policy, const Policy& by) {
  narrow_list(policy.models, by.models,
              [](std::string_view a, std::string_view b) { return matches_model(b, a); });
}

void narrow_workspaces(Policy& policy, const Policy& by) {
  narrow_list(policy.workspaces, by.workspaces,
              [](std::string_view a, std::string_view b) { return a == "*" || a == b; });
}

template <auto Member>
void narrow_prefixes(Policy& policy, const Policy& by) {
  narrow_list(policy.*Member, by.*Member,
              [](const WebAddress& a, const WebAddress& b) { return is_within(b, a); });
}

constexpr PolicyField kPolicyFields[] = {
    {"agents", set_agents, show_names<&Policy::agents>, narrow_agents},
    {"models", set_models, show_names<&Policy::models>, narrow_models},
    {"permission_mode_max", set_mode_max, show_choice<&Policy::permission_mode_max>,
     narrow_choice<&Policy::permission_mode_max>},
    {"mcp", set_mcp, show_choice<&Policy::mcp>, narrow_choice<&Policy::mcp>},
    {"mcp_urls", set_prefixes<&Policy::mcp_urls>, show_prefixes<&Policy::mcp_urls>,
     narrow_prefixes<&Policy::mcp_urls>},
    {"webhook_urls", set_prefixes<&Policy::webhook_urls>, show_prefixes<&Policy::webhook_urls>,
     narrow_prefixes<&Policy::webhook_urls>},
    {"workspaces", set_workspaces, show_names<&Policy::workspaces>, narrow_workspaces},
    {"jail", set_jail, show_choice<&Policy::jail>, narrow_jail, true},
    {"jail_read", set_paths<&Policy::jail_read>, show_names<&Policy::jail_read>,
     join_paths<&Policy::jail_read>, true},
    {"jail_write", set_paths<&Policy::jail_write>, show_names<&Policy::jail_write>,
     join_paths<&Policy::jail_write>, true},
    {"memory_max", set_memory_max, show_limit<&Policy::memory_max>,
     narrow_choice<&Policy::memory_max>, true},
    {"pids_max", set_pids_max, show_limit<&Policy::pids_max>, narrow_choice<&Policy::pids_max>,
     true},
    {"cpu_max_percent", set_cpu_max, show_limit<&Policy::cpu_max_percent>,
     narrow_choice<&Policy::cpu_max_percent>, true},
    {"net", set_net, show_choice<&Policy::net>, narrow_net, true},
    {"net_allow", set_net_allow, show_names<&Policy::net_allow>, join_paths<&Policy::net_allow>,
     true},
};

}  // namespace

std::string set_login_dir(std::string_view table, std::string_view path, std::string& login_dir) {
  if (table != "agents.claude") return "only the login of claude is kept.";
  const bool is_good = is_jail_path(path) && path.starts_with('/') && !path.ends_with('/') &&
                       path.find('/', 1) != path.npos && !path.contains("//") &&
                       !path.contains("/./");
  login_dir = path;
  return is_good ? "" : "it must be an absolute path of a directory, like /srv/logins/claude.";
}

bool is_jail_path(std::string_view path) {
  constexpr std::size_t kPathBytesMax = 4'095;
  const auto is_within = [&](std::string_view above) {
    return path == above || (path.starts_with(above) && path[above.size()] == '/');
  };
  const bool has_control =
      std::ranges::any_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  const bool has_dots = path.ends_with("/..") || path.contains("/../");
  return path.size() <= kPathBytesMax && !has_control && !has_dots && path != "/" &&
         (path.starts_with('/') || path.starts_with("~/")) && !is_within("/proc") &&
         !is_within("/dev") && path.find_first_not_of('/') != path.npos;
}

std::span<const PolicyField> policy_fields() { return kPolicyFields; }

const PolicyField* find_policy_field(std::string_view name) {
  const auto* const found = std::ranges::find(kPolicyFields, name, &PolicyField::name);
  return found == std::end(kPolicyFields) ? nullptr : found;
}

void narrow(Policy& policy, const Policy& by) {
  for (const PolicyField& field : kPolicyFields) field.narrow(policy, by);
}

std::string policy_text(const Policy& policy) {
  json::object object;
  for (const PolicyField& field : kPolicyFields) {
    json::value value = field.show(policy);
    if (!value.is_null()) object.emplace(field.name, std::move(value));
  }
  return json::serialize(object);
}

std::expected<Policy, std::string> policy_from(std::string_view text) {
  boost::system::error_code error;
  const json::value parsed = json::parse({text.data(), text.size()}, error);
  const json::object* const object = error ? nullptr : parsed.if_object();
  if (object == nullptr) return std::unexpected("policy is not a JSON object");
  Policy policy;
  for (const auto& [key, value] : *object) {
    const std::string_view name(key.data(), key.size());
    const PolicyField* const field = find_policy_field(name);
    if (field == nullptr) return std::unexpected("policy has a field that is not known");
    if (const std::string wrong = field->set(policy, value); !wrong.empty()) {
      return std::unexpected(fmt::format("{} of the policy {}", name, wrong));
    }
  }
  return policy;
}

}  // namespace clawdforge
