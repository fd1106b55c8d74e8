#include "cli/run_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>

#include "base/ids.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::size_t kPromptBytesMax = 64 * 1024 * 1024;  // the gateway's own limit is lower
constexpr std::chrono::seconds kTimeoutDefault{3600};      // the gateway ends it before
constexpr std::chrono::seconds kAnswerGrace{30};           // on top of the run's own time
constexpr std::chrono::seconds kUploadMax = std::chrono::hours(1);

Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 64 * 1024> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), stdin)) {
    text.append(piece.data(), count);
    if (text.size() > kPromptBytesMax) {
      return fail(Errc::too_large, "prompt_too_long", "the prompt is too long.");
    }
  }
  return text;
}

// Only the extension matters to the gateway; what would break the form's header goes.
std::string form_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  std::erase_if(name,
                [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\' || c == 0x7F; });
  return name;
}

json::object body_of(const RunCommand& command, std::string prompt) {
  json::object body;
  body["prompt"] = std::move(prompt);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) body[name] = value;
  };
  add("agent", command.agent);
  add("model", command.model);
  add("system", command.system);
  add("effort", command.effort);
  if (!command.files.empty())
    body["files"] = json::array(command.files.begin(), command.files.end());
  if (command.timeout_secs) body["timeout_secs"] = *command.timeout_secs;
  return body;
}

// Prints one member of the answer, or all of it with --json.
int print_member(const GatewayCall& to, const Outcome& outcome, std::string_view name) {
  if (outcome.exit_code != 0) return outcome.exit_code;
  if (to.as_json) {
    fmt::print("{}\n", outcome.text);
    return 0;
  }
  const json::value* member = outcome.body.if_contains({name.data(), name.size()});
  if (member == nullptr) return complain(kExitFailed, "the answer is not a clawdforge gateway's.");
  fmt::print("{}\n",
             member->is_string() ? std::string(member->get_string()) : json::serialize(*member));
  return 0;
}

}  // namespace

int run_prompt(const GatewayCall& to, const RunCommand& command) {
  std::string prompt = command.prompt;
  if (prompt.empty() || prompt == "-") {
    auto read = read_standard_input();
    if (!read) return complain(kExitUsage, read.error().message);
    prompt = std::move(*read);
  }
  ClientRequest request;
  request.method = "POST";
  request.target = "/run";
  request.body = json::serialize(body_of(command, std::move(prompt)));
  const auto timeout =
      command.timeout_secs ? std::chrono::seconds(*command.timeout_secs) : kTimeoutDefault;
  const Outcome outcome =
      call_gateway(to, TokenKind::app, std::move(request), timeout + kAnswerGrace);
  return print_member(to, outcome, "result");
}

int upload_file(const GatewayCall& to, const UploadCommand& command) {
  std::error_code error;
  const int file = ::open(command.path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto bytes = std::filesystem::file_size(command.path, error);
  if (file < 0 || error) {
    if (file >= 0) ::close(file);
    return complain(kExitUsage, fmt::format("{} is not a file that can be read.", command.path));
  }
  const std::string boundary(RandomIds(SystemClock()).token("clawdforge-").reveal());
  ClientRequest request;
  request.method = "POST";
  request.target = "/files";
  if (command.ttl_secs) request.target += fmt::format("?ttl_secs={}", *command.ttl_secs);
  request.content_type = "multipart/form-data; boundary=" + boundary;
  request.body =
      fmt::format("--{}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\n\r\n",
                  boundary, form_name(command.path));
  request.file = ClientFile{file, bytes, fmt::format("\r\n--{}--\r\n", boundary)};
  const Outcome outcome = call_gateway(to, TokenKind::app, std::move(request), kUploadMax);
  ::close(file);
  return print_member(to, outcome, "file_token");
}

}  // namespace clawdforge
