// How a ClaudeStreamAgent opens a conversation.
#include <fmt/format.h>

#include <utility>

#include "agent/claude_stream/claude_stream_agent.h"
#include "agent/claude_stream/stream_cli.h"
#include "agent/failure/agent_failure.h"
#include "agent/failure/masking.h"

namespace clawdforge {
namespace {

// What Claude calls the mode in which it asks before it acts.
constexpr std::string_view kAskingMode = "default";
constexpr std::string_view kNoConversation = "No conversation found";
constexpr std::size_t kRefusalCharactersMax = 300;

}  // namespace

Task<std::optional<Failure>> ClaudeStreamAgent::warm_up() {
  pipe_.begin_opening();
  auto failure = co_await initialize();
  pipe_.end_opening();
  is_warm_ = !failure;
  co_return failure;
}

void ClaudeStreamAgent::adopt(AppName app) {
  setup_.adopt(std::move(app));
  pipe_.adopt();
}

Task<Opening> ClaudeStreamAgent::open(Conversation conversation) {
  pipe_.begin_opening();
  conversation_ = std::move(conversation);
  auto failure = co_await open_in_steps();
  pipe_.end_opening();
  // A spare that has ended says nothing of what a start would give: its owner makes one.
  if (failure && is_warm_ && failure->cause == Cause::agent_exited) {
    failure->cause = Cause::conversation_gone;
  }
  if (failure) co_return std::unexpected(std::move(*failure));
  co_return Opened{.agent_session_id = setup_.conversation_id,
                   .is_loaded = setup_.loads_conversation,
                   .can_load = true,
                   .version = version_};
}

Task<ClaudeStreamAgent::Answered> ClaudeStreamAgent::ask(std::string body) {
  const std::string id = fmt::to_string(++last_id_);
  pipe_.begin_step();
  send(control_request(id, body));
  do {
    while (auto reading = next_reading()) {
      if (reading->answer && reading->answer->request_id == id) {
        co_return std::move(*reading->answer);
      }
      // There is no turn yet: what is said now is not for a caller.
      std::vector<AgentEvent> unheard;
      take(std::move(*reading), unheard);
    }
  } while (co_await read_more());
  co_return std::unexpected(co_await cause_of_early_end());
}

// The agent did not fail because a conversation is not there: its owner begins another one.
Task<Failure> ClaudeStreamAgent::cause_of_early_end() {
  Failure why = co_await pipe_.cause_of_end();
  const bool is_gone = setup_.loads_conversation && (early_error_.contains(kNoConversation) ||
                                                     pipe_.error_tail().contains(kNoConversation));
  if (is_gone) why.cause = Cause::conversation_gone;
  co_return why;
}

Task<ClaudeStreamAgent::Step> ClaudeStreamAgent::open_in_steps() {
  if (!is_warm_) {
    if (auto failure = co_await initialize()) co_return failure;
  } else if (pipe_.is_ending()) {
    co_return co_await cause_of_early_end();
  }
  co_return co_await configure();
}

Task<ClaudeStreamAgent::Step> ClaudeStreamAgent::initialize() {
  auto answer = co_await ask(initialize_body(conversation_));
  if (!answer) co_return std::move(answer.error());
  const std::optional<std::string>& error = answer->error;
  if (error) {
    co_return agent_failed(
        "agent_protocol", fmt::format("{} does not take part in its protocol: {}", setup_.spec.name,
                                      masked_line(*error, kRefusalCharactersMax, setup_.secrets)));
  }
  version_ = setup_.note_version(answer->version);
  setup_.note_choices(std::move(answer->models), {"low", "medium", "high", "xhigh", "max"});
  if (setup_.loads_conversation) {
    cost_usd_ = conversation_.cost_usd_so_far;
  } else if (!answer->commands.empty()) {
    AgentEvent event;
    event.json = translator_.commands_json(answer->commands);
    early_.push_back(std::move(event));
  }
  // The owner's settings and a conversation that is loaded can bring a mode in which it does not
  // ask at all: then the session's permission mode would have no effect.
  if (setup_.spec.applies_owner_settings || answer->mode == kAskingMode) co_return std::nullopt;
  auto set = co_await ask(set_mode_body(kAskingMode));
  if (!set) co_return std::move(set.error());
  if (!set->error) co_return std::nullopt;
  co_return agent_failed("agent_error",
                         fmt::format("{} does not take its mode {}, which the session's permission "
                                     "mode needs.",
                                     setup_.spec.name, kAskingMode));
}

Task<ClaudeStreamAgent::Step> ClaudeStreamAgent::configure() {
  if (!conversation_.model.empty()) {
    auto set = co_await ask(set_model_body(conversation_.model));
    if (!set) co_return std::move(set.error());
    if (set->error) co_return unknown_model(setup_.spec, conversation_.model, {});
  }
  if (!conversation_.effort.empty()) {
    auto set = co_await ask(set_effort_body(conversation_.effort));
    if (!set) co_return std::move(set.error());
    if (set->error) {
      co_return Failure{
          .kind = Errc::invalid,
          .code = "effort_not_supported",
          .message = fmt::format("{} cannot be told this effort, or not with this model.",
                                 setup_.spec.name)};
    }
  }
  if (conversation_.mcp_servers.empty()) co_return std::nullopt;
  auto body = set_mcp_servers_body(conversation_.mcp_servers);
  if (!body) {
    co_return Failure{.kind = Errc::invalid,
                      .code = "invalid_mcp_servers",
                      .message = "The MCP servers are not a list."};
  }
  auto set = co_await ask(std::move(*body));
  if (!set) co_return std::move(set.error());
  const std::optional<std::string> refusal = std::move(set->error);
  if (!refusal) co_return std::nullopt;
  co_return agent_failed("agent_error",
                         fmt::format("{} does not take the MCP servers: {}", setup_.spec.name,
                                     masked_line(*refusal, kRefusalCharactersMax, setup_.secrets)));
}

}  // namespace clawdforge
