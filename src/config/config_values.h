// What the values of the configuration mean: addresses, ledgers, paths and words from a
// list. Each parser gives the value, or the end of a sentence that says why not.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"

namespace clawdforge {

template <class T>
using Parsed = std::expected<T, std::string>;

// What a relative path or a leading ~ stands for.
struct PathOrigin {
  std::string home;         // $HOME; empty when unset
  std::string working_dir;  // absolute
};

// "127.0.0.1:8800", "[::1]:8800" or "localhost:8800".
Parsed<ListenAddress> parse_listen(std::string_view text);
std::string listen_text(const ListenAddress& listen);

Parsed<std::vector<Cidr>> parse_ranges(std::string_view text);
// Host names in lower case, without ports.
Parsed<std::vector<std::string>> parse_hosts(std::string_view text);
Parsed<std::vector<std::string>> parse_origins(std::string_view text);

// Absolute, without "." and "..", without a slash at its end; a leading ~/ is $HOME.
Parsed<std::string> parse_path(std::string_view text, const PathOrigin& origin);

// Paths that an agent can be given; each as parse_path() has it.
Parsed<std::vector<std::string>> parse_jail_paths(std::string_view text, const PathOrigin& origin);

// A bare name stays as it is, to be looked up in PATH.
Parsed<std::string> parse_program(std::string_view text, const PathOrigin& origin);

// sqlite:PATH (made absolute) or a PostgreSQL URL.
Parsed<std::string> parse_ledger(std::string_view text, const PathOrigin& origin);

// Empty, or why the token cannot be used, without showing it.
std::string admin_token_fault(std::string_view token);

// Not empty, of a sane length, without control characters.
Parsed<std::string> parse_text(std::string_view text);

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

inline constexpr Choice<PermissionMode> kPermissionModes[] = {
    {"deny_all", PermissionMode::deny_all},
    {"approve_reads", PermissionMode::approve_reads},
    {"ask", PermissionMode::ask},
    {"approve_all", PermissionMode::approve_all}};
inline constexpr Choice<AgentProtocol> kAgentProtocols[] = {
    {"acp", AgentProtocol::acp}, {"acpx", AgentProtocol::acpx}, {"claude", AgentProtocol::claude}};
inline constexpr Choice<EventFormat> kEventFormats[] = {{"acp", EventFormat::acp},
                                                        {"simple", EventFormat::simple}};
inline constexpr Choice<PidNamespace> kPidNamespaces[] = {
    {"auto", PidNamespace::automatic}, {"on", PidNamespace::on}, {"off", PidNamespace::off}};
inline constexpr Choice<KeptPrompts> kKeptPrompts[] = {
    {"none", KeptPrompts::none}, {"sessions", KeptPrompts::sessions}, {"all", KeptPrompts::all}};
inline constexpr Choice<bool> kSwitch[] = {{"on", true}, {"off", false}};
inline constexpr Choice<bool> kWarm[] = {{"auto", true}, {"off", false}};
inline constexpr Choice<bool> kFlag[] = {{"true", true}, {"false", false}};
inline constexpr Choice<LogLevel> kLogLevels[] = {{"debug", LogLevel::debug},
                                                  {"info", LogLevel::info},
                                                  {"warn", LogLevel::warn},
                                                  {"error", LogLevel::error}};
inline constexpr Choice<LogFormat> kLogFormats[] = {{"text", LogFormat::text},
                                                    {"json", LogFormat::json}};

template <class T, std::size_t N>
Parsed<T> parse_choice(std::string_view text, const Choice<T> (&choices)[N]) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (choice.name == text) return choice.value;
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
  }
  return std::unexpected("it must be one of " + names + ".");
}

template <class T, std::size_t N>
std::string_view choice_name(T value, const Choice<T> (&choices)[N]) {
  for (const Choice<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

}  // namespace clawdforge
