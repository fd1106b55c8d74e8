// The one table of the fields of a policy: what each is called, and how it is read, shown and
// combined. The API, the ledger, the configuration file and effective_policy() go through it.
#pragma once

#include <boost/json/fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "model/policy.h"

namespace clawdforge {

inline constexpr std::size_t kPolicyListMax = 64;        // entries of one list
inline constexpr std::size_t kPolicyNameBytesMax = 200;  // of one of them

struct PolicyField {
  std::string_view name;
  // Null takes it back. The end of a sentence that says what is wrong ("must be ..."); empty:
  // taken.
  std::string (*set)(Policy& policy, const boost::json::value& value);
  // The value as JSON; null where it is not set.
  boost::json::value (*show)(const Policy& policy);
  // Makes it the strictest of both.
  void (*narrow)(Policy& policy, const Policy& by);
  // Of the jail: told only where it is set, and set for all agents by keys of its own.
  bool is_of_jail = false;
};

// Whether an agent can be given this path: absolute or below ~, and not the root, /proc or /dev.
bool is_jail_path(std::string_view path);
// Where the login of the agent of a table is kept: absolute, and in a directory of its own, which
// is written, too. What is wrong with it; empty: nothing.
std::string set_login_dir(std::string_view table, std::string_view path, std::string& login_dir);

std::span<const PolicyField> policy_fields();
const PolicyField* find_policy_field(std::string_view name);

// All fields of `policy` become the strictest of both.
void narrow(Policy& policy, const Policy& by);

// The fields that are set, as a JSON object; and back. The error names what is wrong; a field
// that is not known is one: to leave it out would allow more than was meant.
std::string policy_text(const Policy& policy);
std::expected<Policy, std::string> policy_from(std::string_view text);

}  // namespace clawdforge
