#include "cli/top/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/terminal/text_filter.h"

namespace clawdforge {
namespace {

constexpr TextStyle kHead{.is_bold = true};
constexpr TextStyle kLabel{.is_dim = true};
constexpr TextStyle kAlarm{.colour = Colour::red};
constexpr std::array<std::string_view, 2> kAskRoutes = {"/run", "/sessions/{id}/turn"};
constexpr std::array<std::string_view, 9> kFigures = {
    "clawdforge_runs_running",     "clawdforge_runs_waiting",      "clawdforge_agents_running",
    "clawdforge_agents_waiting",   "clawdforge_turns_waiting",     "clawdforge_permissions_open",
    "clawdforge_http_connections", "clawdforge_ledger_queue_jobs", "clawdforge_open_sessions"};
constexpr double kMedian = 0.5;
constexpr double kLate = 0.99;
constexpr double kMillis = 1000;

double figure(const TopSnapshot& snapshot, std::string_view name) {
  const auto found = snapshot.figures.find("clawdforge_" + std::string(name));
  return found == snapshot.figures.end() ? 0 : found->second;
}

std::string latency_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  if (std::isinf(*seconds)) return "over 60 s";
  return *seconds < 1 ? fmt::format("{:.0f} ms", *seconds * kMillis)
                      : fmt::format("{:.1f} s", *seconds);
}

StyledText row(std::string_view label, std::string_view text) {
  StyledText line;
  append_span(line, fmt::format("{:<10}", label), kLabel);
  append_span(line, text);
  return line;
}

void append_agents(const TopSnapshot& now, StyledLines& lines) {
  lines.push_back(
      {{fmt::format("{:<14}{:<13}{:<22}{}", "AGENT", "LOGIN", "VERSION", "LAST RUN"), kHead}});
  for (const TopAgent& agent : now.agents) {
    const std::string version = agent.version.empty() ? "not installed" : agent.version;
    StyledText line;
    append_span(line, fmt::format("{:<14}", filter_line(agent.name)));
    append_span(line, fmt::format("{:<13}", filter_line(agent.login)),
                agent.login == "missing" && !agent.version.empty() ? kAlarm : TextStyle{});
    append_span(line, fmt::format("{:<22}", filter_line(version)),
                agent.version.empty() ? kLabel : TextStyle{});
    append_span(line, filter_line(agent.last),
                agent.last.empty() || agent.last == "ok" ? TextStyle{} : kAlarm);
    lines.push_back(std::move(line));
  }
}

void append_busy(const TopSnapshot& now, std::size_t rows, StyledLines& lines) {
  lines.push_back({{fmt::format("{:<38}{:<16}{:<12}{:>5}{:>8}", "BUSY SESSION", "APP", "AGENT",
                                "TURN", "SINCE"),
                    kHead}});
  for (const TopSession& session : now.busy) {
    if (lines.size() + 1 >= rows && now.busy.size() > 1 && &session != &now.busy.back()) {
      lines.push_back({{fmt::format("… {} busy in all", now.busy.size()), kLabel}});
      return;
    }
    lines.push_back({{fmt::format("{:<38}{:<16}{:<12}{:>5}{:>6} s", filter_line(session.id),
                                  filter_line(session.app), filter_line(session.agent),
                                  session.turn, session.busy_seconds),
                      {}}});
  }
  if (now.busy.empty()) lines.push_back({{"none", kLabel}});
}

}  // namespace

void read_metrics(const MetricsText& metrics, TopSnapshot& snapshot) {
  for (const std::string_view name : kFigures) {
    snapshot.figures[std::string(name)] = metrics.sum(name);
  }
  for (const std::string_view state : {"succeeded", "failed", "cancelled"}) {
    snapshot.figures["clawdforge_runs_" + std::string(state)] =
        metrics.sum("clawdforge_runs_total", {{"state", state}});
  }
  for (const std::string_view state : {"done", "failed", "cancelled"}) {
    snapshot.figures["clawdforge_turns_" + std::string(state)] =
        metrics.sum("clawdforge_turns_total", {{"state", state}});
  }
  for (const MetricSample& sample : metrics.samples("clawdforge_build_info")) {
    const auto version = sample.labels.find("version");
    if (version != sample.labels.end()) snapshot.version = filter_line(version->second);
  }
  for (const std::string_view route : kAskRoutes) {
    snapshot.asks += metrics.sum("clawdforge_http_request_seconds_count",
                                 {{"method", "POST"}, {"route", route}});
    for (const MetricSample& sample : metrics.samples("clawdforge_http_request_seconds_bucket")) {
      const auto asked = sample.labels.find("route");
      const auto bound = sample.labels.find("le");
      if (asked == sample.labels.end() || bound == sample.labels.end()) continue;
      if (asked->second != route) continue;
      snapshot.latency[std::strtod(bound->second.c_str(), nullptr)] += sample.value;
    }
  }
}

std::optional<double> quantile(const TopSnapshot& before, const TopSnapshot& now, double share) {
  const double count = now.asks - before.asks;
  if (count <= 0) return std::nullopt;
  for (const auto& [seconds, total] : now.latency) {
    const auto earlier = before.latency.find(seconds);
    const double asks = total - (earlier == before.latency.end() ? 0 : earlier->second);
    if (asks >= share * count) return seconds;
  }
  return std::nullopt;
}

StyledLines top_lines(const TopSnapshot& before, const TopSnapshot& now, const std::string& url,
                      const std::string& trouble, const TerminalSize& size) {
  StyledLines lines;
  StyledText title;
  append_span(title, "clawdforge " + now.version, kHead);
  append_span(title, fmt::format("  {}  ", url));
  append_span(title, trouble.empty() ? "q leaves" : trouble, trouble.empty() ? kLabel : kAlarm);
  lines.push_back(std::move(title));
  lines.emplace_back();
  const double seconds = now.at - before.at;
  const double rate = seconds > 0 ? std::max(0.0, (now.asks - before.asks) / seconds) : 0;
  const auto of = [&](std::string_view name) { return figure(now, name); };
  lines.push_back(
      row("places", fmt::format("runs {} · agents {}", of("runs_running"), of("agents_running"))));
  lines.push_back(
      row("waiting", fmt::format("runs {} · agents {} · turns {} · questions {} · ledger {}",
                                 of("runs_waiting"), of("agents_waiting"), of("turns_waiting"),
                                 of("permissions_open"), of("ledger_queue_jobs"))));
  lines.push_back(row("asks", fmt::format("{:.1f}/s · half within {} · 99 % within {}", rate,
                                          latency_text(quantile(before, now, kMedian)),
                                          latency_text(quantile(before, now, kLate)))));
  lines.push_back(row("so far", fmt::format("runs {} ok, {} failed · turns {} done, {} failed",
                                            of("runs_succeeded"), of("runs_failed"),
                                            of("turns_done"), of("turns_failed"))));
  lines.push_back(row("open", fmt::format("sessions {} · connections {}", of("open_sessions"),
                                          of("http_connections"))));
  lines.emplace_back();
  append_agents(now, lines);
  lines.emplace_back();
  append_busy(now, size.rows, lines);
  if (lines.size() > size.rows) lines.resize(size.rows);
  for (StyledText& line : lines) line = cut_to_width(line, size.columns - 1);
  return lines;
}

}  // namespace clawdforge
