#include "api/admin/token_fields.h"

#include <boost/json.hpp>

#include "json/json_members.h"
#include "model/limits/app_limits.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::size_t kCidrsPerAppMax = 64;
constexpr std::int64_t kCountMax = 1'000'000;  // of sessions or runs an app may be allowed

void take_cidrs(Fields& fields, App& app) {
  if (fields.given("ip_cidrs") == nullptr) return;
  app.ip_cidrs.clear();
  const auto texts = fields.texts("ip_cidrs", kCidrsPerAppMax);
  if (!texts) return;
  for (const std::string& text : *texts) {
    auto cidr = Cidr::parse(text);
    if (cidr) app.ip_cidrs.push_back(*cidr);
    if (!cidr) fields.wrong("ip_cidrs", "has a range that cannot be read: " + cidr.error().message);
  }
}

void take_event_format(Fields& fields, App& app) {
  if (fields.given("event_format") == nullptr) return;
  app.event_format = std::nullopt;
  if (const auto format = fields.text("event_format")) {
    app.event_format = event_format_from(*format);
    if (!app.event_format) fields.wrong("event_format", "must be acp or simple");
  }
}

void take_count(Fields& fields, std::string_view name, std::optional<std::int64_t>& count) {
  if (fields.given(name) != nullptr) count = fields.integer(name, 1, kCountMax);
}

void take_limits(Fields& fields, App& app) {
  AppLimits limits = app.limits ? *app.limits : AppLimits{};
  for (const LimitField& field : limit_fields()) {
    const boost::json::value* const value = fields.given(field.name);
    if (value == nullptr) continue;
    if (std::string wrong = field.set(limits, *value); !wrong.empty()) {
      fields.wrong(field.name, std::move(wrong));
    }
  }
  app.limits =
      limits == AppLimits{} ? nullptr : std::make_shared<const AppLimits>(std::move(limits));
}

}  // namespace

void take_settings(Fields& fields, App& app) {
  take_cidrs(fields, app);
  take_event_format(fields, app);
  take_count(fields, "max_sessions", app.sessions_max);
  take_count(fields, "max_runs", app.runs_max);
  for (const PolicyField& field : policy_fields()) {
    const boost::json::value* const value = fields.given(field.name);
    if (value == nullptr) continue;
    if (std::string wrong = field.set(app.policy, *value); !wrong.empty()) {
      fields.wrong(field.name, std::move(wrong));
    }
  }
  take_limits(fields, app);
}

void append_cidrs(std::string& out, const std::vector<Cidr>& cidrs) {
  append_name(out, "ip_cidrs");
  out += '[';
  for (const Cidr& cidr : cidrs) {
    if (out.back() != '[') out += ',';
    append_json_string(out, cidr.text());
  }
  out += ']';
}

void append_policy(std::string& out, const Policy& policy) {
  for (const PolicyField& field : policy_fields()) {
    const boost::json::value value = field.show(policy);
    if (field.is_of_jail && value.is_null()) continue;
    append_name(out, field.name);
    out += boost::json::serialize(value);
  }
}

void append_limits(std::string& out, const App& app) {
  append_cidrs(out, app.ip_cidrs);
  append_member(out, "event_format",
                app.event_format ? std::optional(name_of(*app.event_format)) : std::nullopt);
  append_member(out, "max_sessions", app.sessions_max);
  append_member(out, "max_runs", app.runs_max);
  const AppLimits none;
  for (const LimitField& field : limit_fields()) {
    append_name(out, field.name);
    out += boost::json::serialize(field.show(app.limits ? *app.limits : none));
  }
}

}  // namespace clawdforge
