#include "model/policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "model/policy_fields.h"

namespace clawdforge {
namespace {

const std::vector<std::string> kAgentNames = {"claude", "codex", "demo"};
const std::vector<std::string> kPatterns = {"*", "son*", "sonnet", "sonnet-4*", "opus"};
const std::vector<std::string> kModels = {"sonnet", "sonnet-4-5", "son", "opus", "opus-1", "haiku"};
const std::vector<std::string> kPrefixes = {"https://a.example/", "https://a.example/mcp",
                                            "https://a.example/mcp/v1", "http://a.example/mcp",
                                            "https://b.example:8443/"};
const std::vector<std::string> kUrls = {
    "https://a.example/",      "https://a.example/mcp",   "https://a.example/mcp/v1/x",
    "https://a.example/mcp-2", "http://a.example/mcp/x",  "https://b.example:8443/y",
    "https://b.example/y",     "https://a.example.b/mcp", "https://a.example@b.example/mcp"};
constexpr PermissionMode kAllModes[] = {PermissionMode::deny_all, PermissionMode::approve_reads,
                                        PermissionMode::ask, PermissionMode::approve_all};

std::optional<std::vector<std::string>> some_of(const std::vector<std::string>& names) {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(names));
}

template <class T>
std::optional<T> maybe_one(std::initializer_list<T> values) {
  const auto chosen = *rc::gen::inRange<std::size_t>(0, values.size() + 1);
  return chosen == values.size() ? std::nullopt : std::optional(*(values.begin() + chosen));
}

Policy any_policy() {
  Policy policy;
  policy.agents = some_of(kAgentNames);
  policy.models = some_of(kPatterns);
  using enum PermissionMode;
  policy.permission_mode_max = maybe_one({deny_all, approve_reads, ask, approve_all});
  policy.mcp = maybe_one({McpAccess::none, McpAccess::named, McpAccess::http, McpAccess::any});
  if (const auto urls = some_of(kPrefixes)) {
    policy.mcp_urls.emplace();
    for (const std::string& url : *urls) policy.mcp_urls->push_back(*WebAddress::parse(url));
  }
  if (const auto urls = some_of(kPrefixes)) {
    policy.webhook_urls.emplace();
    for (const std::string& url : *urls) policy.webhook_urls->push_back(*WebAddress::parse(url));
  }
  return policy;
}

// What one part alone says, where what it does not set is left to the others.
Policy alone(Policy part) {
  if (!part.mcp) part.mcp = McpAccess::any;
  if (!part.mcp_urls) {
    part.mcp_urls.emplace();
    for (const std::string& url : kPrefixes) part.mcp_urls->push_back(*WebAddress::parse(url));
  }
  return part;
}

RC_GTEST_PROP(EffectivePolicy, IsNeverLooserThanAnyPart, ()) {
  const Policy parts[] = {any_policy(), any_policy(), any_policy()};
  const Policy all = effective_policy(parts[0], parts[1], parts[2]);
  for (const Policy& given : parts) {
    const Policy part = alone(given);
    for (const std::string& agent : kAgentNames) {
      RC_ASSERT(!check_agent(all, agent) || check_agent(part, agent));
    }
    for (const std::string& model : kModels) {
      RC_ASSERT(!check_model(all, model) || check_model(part, model));
    }
    RC_ASSERT(!check_model(all, "") || check_model(part, ""));
    for (const PermissionMode mode : kAllModes) {
      RC_ASSERT(!permitted_mode(all, mode, mode) || permitted_mode(part, mode, mode));
    }
    RC_ASSERT(!check_mcp_named(all) || check_mcp_named(part));
    RC_ASSERT(!check_mcp_command(all) || check_mcp_command(part));
    for (const std::string& url : kUrls) {
      RC_ASSERT(!check_mcp_url(all, url) || check_mcp_url(part, url));
    }
  }
}

RC_GTEST_PROP(EffectivePolicy, AllowsWhatEveryPartAllows, ()) {
  const Policy parts[] = {any_policy(), any_policy(), any_policy()};
  const Policy all = effective_policy(parts[0], parts[1], parts[2]);
  const auto each = [&](auto check) {
    return std::ranges::all_of(parts, [&](const Policy& part) { return bool(check(alone(part))); });
  };
  for (const std::string& agent : kAgentNames) {
    RC_ASSERT(each([&](const Policy& p) { return check_agent(p, agent); }) ==
              bool(check_agent(all, agent)));
  }
  for (const std::string& model : kModels) {
    RC_ASSERT(each([&](const Policy& p) { return check_model(p, model); }) ==
              bool(check_model(all, model)));
  }
  for (const PermissionMode mode : kAllModes) {
    RC_ASSERT(each([&](const Policy& p) { return permitted_mode(p, mode, mode); }) ==
              bool(permitted_mode(all, mode, mode)));
  }
  const bool is_mcp_given = parts[0].mcp || parts[2].mcp;
  RC_ASSERT((is_mcp_given && each([](const Policy& p) { return check_mcp_command(p); })) ==
            bool(check_mcp_command(all)));
  RC_ASSERT((is_mcp_given && each([](const Policy& p) { return check_mcp_named(p); })) ==
            bool(check_mcp_named(all)));
}

RC_GTEST_PROP(PolicyText, IsReadAsItWasWritten, ()) {
  Policy policy = any_policy();
  // A list that is empty is what two lists without anything in common give; no request can write
  // it.
  const auto tidy = [](auto& list) {
    if (!list) return;
    std::ranges::sort(*list, {}, [](const auto& entry) {
      if constexpr (requires { entry.text(); })
        return entry.text();
      else
        return entry;
    });
    list->erase(std::ranges::unique(*list).begin(), list->end());
    if (list->empty()) list.reset();
  };
  tidy(policy.agents);
  tidy(policy.models);
  tidy(policy.mcp_urls);
  tidy(policy.webhook_urls);
  const auto read = policy_from(policy_text(policy));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == policy);
}

TEST(PolicyText, OfNoPolicyIsAnEmptyObject) {
  EXPECT_EQ(policy_text(Policy{}), "{}");
  EXPECT_EQ(policy_from("{}"), Policy{});
  EXPECT_EQ(policy_from(R"({"mcp":null,"agents":null})"), Policy{});
}

TEST(PolicyText, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"",
                           "null",
                           "[]",
                           "{",
                           R"({"unknown":1})",
                           R"({"agents":"a"})",
                           R"({"agents":[]})",
                           R"({"agents":[""]})",
                           R"({"agents":[1]})",
                           R"({"agents":["a,b"]})",
                           R"({"agents":["a\n"]})",
                           R"({"models":["a*b"]})",
                           R"({"models":["**"]})",
                           R"({"permission_mode_max":"all"})",
                           R"({"permission_mode_max":3})",
                           R"({"mcp":"all"})",
                           R"({"mcp":true})",
                           R"({"mcp_urls":["a.example"]})",
                           R"({"mcp_urls":["https://a.example/?q"]})",
                           R"({"mcp_urls":["https://u@a.example/"]})",
                           R"({"mcp_urls":{}})"}) {
    EXPECT_FALSE(policy_from(text)) << text;
  }
}

TEST(EffectivePolicy, HasTheStatedDefaults) {
  const Policy policy = effective_policy({}, {}, {});
  EXPECT_TRUE(check_agent(policy, "anything"));
  EXPECT_TRUE(check_model(policy, ""));
  EXPECT_EQ(permission_mode_max(policy), PermissionMode::approve_all);
  EXPECT_EQ(mcp_access(policy), McpAccess::none);
}

TEST(EffectivePolicy, OfAnAgentOnlyNarrows) {
  Policy any;
  any.mcp = McpAccess::any;
  Policy named;
  named.mcp = McpAccess::named;
  EXPECT_EQ(mcp_access(effective_policy({}, any, {})), McpAccess::none);
  EXPECT_EQ(mcp_access(effective_policy({}, any, named)), McpAccess::named);
  EXPECT_EQ(mcp_access(effective_policy(named, {}, {})), McpAccess::named);
  EXPECT_EQ(mcp_access(effective_policy(any, named, any)), McpAccess::named);
}

Policy with_webhooks(const std::vector<std::string>& prefixes) {
  Policy policy;
  policy.webhook_urls.emplace();
  for (const std::string& prefix : prefixes) {
    policy.webhook_urls->push_back(*WebAddress::parse(prefix));
  }
  return policy;
}

TEST(CheckWebhook, AllowsWhatIsWithinAPrefix) {
  const Policy policy = with_webhooks({"https://a.example/hooks", "http://127.0.0.1:8080/"});
  for (const char* url :
       {"https://a.example/hooks", "https://A.Example:443/hooks/", "HTTPS://a.example/hooks/x?y=1",
        "https://a.example/hooks/a%20b", "http://127.0.0.1:8080/any"}) {
    EXPECT_TRUE(check_webhook(policy, url)) << url;
  }
}

TEST(CheckWebhook, RefusesAllElse) {
  const Policy policy = with_webhooks({"https://a.example/hooks"});
  for (const char* url : {"",
                          "https://a.example",
                          "https://a.example/",
                          "https://a.example/hooks-2",
                          "https://a.example/hooksx",
                          "https://a.example/Hooks",
                          "http://a.example/hooks",
                          "https://a.example:8443/hooks",
                          "https://a.example:80/hooks",
                          "https://a.example./hooks",
                          "https://a.example.evil.example/hooks",
                          "https://evil.example/a.example/hooks",
                          "https://a.example@evil.example/hooks",
                          "https://user:pass@a.example/hooks",
                          "https://evil.example#a.example/hooks",
                          "https://evil.example?https://a.example/hooks",
                          "https://a.example\\@evil.example/hooks",
                          "https://a.example/hooks/../admin",
                          "https://a.example/hooks/./x",
                          "https://a.example/hooks/%2e%2e/admin",
                          "https://a.example/hooks/%2E%2E%2Fadmin",
                          "https://a.example/hooks%2f..%2fadmin",
                          "https://a.example/hooks%5c..%5cadmin",
                          "https://a.example/hooks/%252e%252e/",
                          "https://a.example/hooks\r\nHost: evil.example",
                          "https://a.example/hooks/%0d%0a",
                          "https://a.example/hooks x",
                          "https://a.example/hooks#fragment",
                          "https:a.example/hooks",
                          "//a.example/hooks",
                          "/hooks",
                          "file:///hooks",
                          "https://[::ffff:1.2.3.4]/hooks",
                          "https://\xc3\xa0.example/hooks"}) {
    const auto checked = check_webhook(policy, url);
    ASSERT_FALSE(checked) << url;
    EXPECT_EQ(checked.error().code, "webhook_not_allowed") << url;
    EXPECT_EQ(checked.error().kind, Errc::invalid) << url;
  }
}

TEST(CheckWebhook, WithoutAPrefixThereAreNone) {
  EXPECT_FALSE(check_webhook({}, "https://a.example/"));
  const Policy all = with_webhooks({"https://a.example/"});
  EXPECT_FALSE(check_webhook(effective_policy(all, {}, {}), "https://a.example/"))
      << "the gateway's own list only narrows";
  EXPECT_FALSE(check_webhook(effective_policy(with_webhooks({"https://b.example/"}), {}, all),
                             "https://a.example/"));
  EXPECT_TRUE(check_webhook(effective_policy(all, {}, with_webhooks({"https://a.example/x"})),
                            "https://a.example/x/y"));
}

TEST(PermittedMode, LowersADefaultAndRefusesAWish) {
  Policy policy;
  policy.permission_mode_max = PermissionMode::approve_reads;
  EXPECT_EQ(permitted_mode(policy, std::nullopt, PermissionMode::approve_all),
            PermissionMode::approve_reads);
  EXPECT_EQ(permitted_mode(policy, std::nullopt, PermissionMode::deny_all),
            PermissionMode::deny_all);
  EXPECT_EQ(permitted_mode(policy, PermissionMode::approve_reads, PermissionMode::deny_all),
            PermissionMode::approve_reads);
  const auto refused = permitted_mode(policy, PermissionMode::ask, PermissionMode::deny_all);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "permission_mode_not_allowed");
  EXPECT_EQ(refused.error().kind, Errc::forbidden);
}

TEST(CheckModel, NamesWhatToAskFor) {
  Policy policy;
  policy.models = {"sonnet", "haiku*"};
  EXPECT_TRUE(check_model(policy, "haiku-4"));
  const auto unnamed = check_model(policy, "");
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().code, "model_not_allowed");
  EXPECT_TRUE(unnamed.error().message.contains("sonnet, haiku*"));
}

TEST(CheckMcp, EachStepAllowsMore) {
  Policy policy;
  policy.mcp_urls = {*WebAddress::parse("https://a.example/mcp")};
  const auto allowed = [&] {
    return std::vector<bool>{
        bool(check_mcp_named(policy)), bool(check_mcp_url(policy, "https://a.example/mcp/x")),
        bool(check_mcp_url(policy, "https://b.example/")), bool(check_mcp_command(policy))};
  };
  policy.mcp = McpAccess::none;
  EXPECT_EQ(allowed(), (std::vector<bool>{false, false, false, false}));
  policy.mcp = McpAccess::named;
  EXPECT_EQ(allowed(), (std::vector<bool>{true, false, false, false}));
  policy.mcp = McpAccess::http;
  EXPECT_EQ(allowed(), (std::vector<bool>{true, true, false, false}));
  policy.mcp = McpAccess::any;
  EXPECT_EQ(allowed(), (std::vector<bool>{true, true, true, true}));
}

}  // namespace
}  // namespace clawdforge
