// How an AcpAgent opens a conversation.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/acp/acp_agent.h"
#include "agent/acp/acp_failure.h"
#include "agent/failure/agent_failure.h"

namespace clawdforge {
namespace {

// What Claude's adapter calls the mode in which it asks before it acts.
constexpr std::string_view kAskingMode = "default";

// The ledger keeps this id, and the agent must know it again as it is: it cannot be cut.
std::optional<Failure> nonsense_in_id(std::string_view id, const AgentSpec& spec) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (id.size() <= kAgentIdBytesMax && std::ranges::none_of(id, is_control)) return std::nullopt;
  return agent_failed("agent_nonsense",
                      fmt::format("{} gave its conversation an id of more than {} bytes, or one "
                                  "with control characters.",
                                  spec.name, kAgentIdBytesMax));
}

}  // namespace

Task<std::optional<Failure>> AcpAgent::warm_up() {
  pipe_.begin_opening();
  auto failure = co_await initialize();
  pipe_.end_opening();
  is_warm_ = !failure;
  co_return failure;
}

void AcpAgent::adopt(AppName app) {
  setup_.adopt(std::move(app));
  pipe_.adopt();
}

Task<Opening> AcpAgent::open(Conversation conversation) {
  pipe_.begin_opening();
  conversation_ = std::move(conversation);
  auto failure = co_await open_in_steps();
  pipe_.end_opening();
  // A spare that has ended says nothing of what a start would give: its owner makes one.
  if (failure && is_warm_ && failure->cause == Cause::agent_exited) {
    failure->cause = Cause::conversation_gone;
  }
  if (failure) co_return std::unexpected(std::move(*failure));
  co_return Opened{.agent_session_id = conversation_.agent_session_id,
                   .is_loaded = is_loaded_,
                   .can_load = abilities_.can_load || abilities_.can_resume,
                   .version = abilities_.agent_version};
}

Failure AcpAgent::failure_of_error(const AcpError& error) const {
  return failure_of(error, setup_.spec, setup_.now(), setup_.secrets);
}

Task<AcpAgent::Answer> AcpAgent::ask(std::string method, std::string params) {
  const std::int64_t id = ++last_id_;
  const std::string wanted = fmt::to_string(id);
  pipe_.begin_step();
  send(acp_request(id, method, params));
  bool has_more = true;
  while (true) {
    while (auto message = next_message()) {
      if (message->kind == AcpKind::response && message->id == wanted) {
        co_return std::move(*message);
      }
      take_early(std::move(*message));
    }
    if (co_await read_large_line()) continue;
    if (!has_more) break;
    has_more = co_await read_more();
  }
  co_return std::unexpected(co_await pipe_.cause_of_end());
}

Task<AcpAgent::Answered> AcpAgent::ask_well(std::string method, std::string params) {
  auto answer = co_await ask(std::move(method), std::move(params));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const std::optional<AcpError>& error = answer->error;
  if (error) co_return std::unexpected(failure_of_error(*error));
  co_return std::move(answer->result).value_or(AcpResult{});
}

// Until the conversation is open, what an agent says is replayed history or belongs to no turn.
// There is no turn yet whose caller could answer a question, so questions are cancelled.
void AcpAgent::take_early(AcpMessage message) {
  if (message.question) {
    send(permission_answer(message.id, std::nullopt));
    return;
  }
  const bool is_history = conversation_.agent_session_id.empty();
  if (message.kind == AcpKind::notification && is_history) return;
  const std::size_t bytes = message.json.size();
  if (message.kind == AcpKind::notification && early_bytes_ + bytes > kAgentEarlyBytesMax) return;
  const std::size_t before = early_.size();
  take(std::move(message), early_);
  if (early_.size() > before) early_bytes_ += bytes;
  early_shown_.set(early_bytes_);
}

Task<AcpAgent::Step> AcpAgent::open_in_steps() {
  if (!is_warm_) {
    if (auto failure = co_await initialize()) co_return failure;
  }
  if (!setup_.spec.auth_method.empty()) {
    auto answer = co_await ask_well("authenticate", authenticate_params(setup_.spec.auth_method));
    if (!answer) co_return std::move(answer.error());
  }
  if (auto failure = co_await load_or_begin()) co_return failure;
  if (auto failure = co_await choose_mode()) co_return failure;
  if (auto failure = co_await choose_model()) co_return failure;
  co_return co_await choose_effort();
}

Task<AcpAgent::Step> AcpAgent::initialize() {
  auto answer = co_await ask_well("initialize", initialize_params());
  if (!answer) co_return std::move(answer.error());
  abilities_ = std::move(*answer);
  if (abilities_.protocol_version > 1) {
    co_return agent_failed("agent_protocol",
                           fmt::format("{} speaks version {} of its protocol; version 1 is needed.",
                                       setup_.spec.name, abilities_.protocol_version));
  }
  abilities_.agent_version = setup_.note_version(abilities_.agent_version);
  // An adapter for Claude is known by its spec, or says so itself.
  dialect_.is_claude = setup_.spec.takes_claude_options || abilities_.agent_name.contains("claude");
  dialect_.takes_system = dialect_.is_claude || setup_.spec.takes_system_prompt;
  dialect_.owner_settings = setup_.spec.applies_owner_settings;
  co_return std::nullopt;
}

Task<AcpAgent::Step> AcpAgent::load_or_begin() {
  const bool replaces =
      conversation_.system_mode == SystemMode::replace && !conversation_.system.empty();
  if (replaces && !dialect_.takes_system) co_return system_mode_not_supported(setup_.spec);
  const std::string id = std::exchange(conversation_.agent_session_id, {});
  auto params = session_params(conversation_, dialect_, id);
  if (!params) {
    co_return Failure{.kind = Errc::invalid,
                      .code = "invalid_mcp_servers",
                      .message = "The MCP servers are not a list."};
  }
  if (id.empty() || !(abilities_.can_resume || abilities_.can_load)) {
    co_return co_await begin_another();
  }
  auto answer =
      co_await ask(abilities_.can_resume ? "session/resume" : "session/load", std::move(*params));
  if (!answer) co_return std::move(answer.error());
  const std::optional<AcpError>& error = answer->error;
  if (error && error->code == kAcpNotLoggedIn) co_return failure_of_error(*error);
  if (error) {
    co_return co_await begin_another();
  }
  const AcpResult result = std::move(answer->result).value_or(AcpResult{});
  if (auto nonsense = nonsense_in_id(result.session_id, setup_.spec)) co_return nonsense;
  conversation_.agent_session_id = result.session_id.empty() ? id : result.session_id;
  options_ = result.options;
  mode_ = result.mode;
  is_loaded_ = true;
  owes_system_ = conversation_.is_unasked && has_system_to_say();
  cost_.begin_at(conversation_.cost_usd_so_far);
  co_return std::nullopt;
}

Task<AcpAgent::Step> AcpAgent::begin_another() {
  auto params = session_params(conversation_, dialect_, {});
  auto answer = co_await ask_well("session/new", params.value_or("{}"));
  if (!answer) co_return std::move(answer.error());
  if (answer->session_id.empty()) {
    co_return agent_failed("agent_nonsense",
                           fmt::format("{} began a conversation without an id.", setup_.spec.name));
  }
  if (auto nonsense = nonsense_in_id(answer->session_id, setup_.spec)) co_return nonsense;
  conversation_.agent_session_id = answer->session_id;
  options_ = std::move(answer->options);
  mode_ = std::move(answer->mode);
  owes_system_ = has_system_to_say();
  note_choices();
  if (!setup_.spec.takes_title) co_return std::nullopt;
  co_return co_await set_title();
}

// The adapter for Codex asks a model for a title, at the owner's cost, in a second conversation
// that the session's mode does not reach. It does not where there is a title.
Task<AcpAgent::Step> AcpAgent::set_title() {
  auto answer = co_await ask("session/set_title", set_title_params(conversation_.agent_session_id));
  if (!answer) co_return std::move(answer.error());
  const std::optional<AcpError>& error = answer->error;
  // An older adapter makes no titles.
  if (error && error->code != kAcpUnknownMethod) co_return failure_of_error(*error);
  co_return std::nullopt;
}

// By its category; agents that give none go by the name of the option.
const AcpOption* AcpAgent::option_of(std::string_view category, std::string_view id) const {
  auto found = std::ranges::find(options_, category, &AcpOption::category);
  if (found == options_.end()) found = std::ranges::find(options_, id, &AcpOption::id);
  return found == options_.end() ? nullptr : &*found;
}

void AcpAgent::note_choices() const {
  const AcpOption* const models = option_of("model", "model");
  const AcpOption* const efforts = option_of("thought_level", "effort");
  using Values = std::vector<std::string>;
  setup_.note_choices(models == nullptr ? Values() : models->values,
                      efforts == nullptr ? Values() : efforts->values);
}

Task<AcpAgent::Chosen> AcpAgent::choose(std::string category, std::string id, std::string value) {
  const AcpOption* option = option_of(category, id);
  if (option == nullptr) co_return false;
  auto answer = co_await ask("session/set_config_option",
                             set_option_params(conversation_.agent_session_id, option->id, value));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const std::optional<AcpError>& error = answer->error;
  if (error && error->code == kAcpNotLoggedIn) co_return std::unexpected(failure_of_error(*error));
  if (error) co_return false;
  AcpResult result = std::move(answer->result).value_or(AcpResult{});
  if (result.options.empty()) co_return true;
  options_ = std::move(result.options);
  option = option_of(category, id);
  // The adapter for Claude takes short names of models too, and tells the long one.
  const bool may_differ = dialect_.is_claude && category == "model";
  co_return option == nullptr || option->current == value || may_differ;
}

// The mode of the agent's own that belongs to the session's permission mode. Empty: none does.
// The owner's settings, and a conversation that is loaded, can bring a mode in which the
// adapter for Claude does not ask at all: then the session's permission mode would have no effect.
std::string AcpAgent::agent_mode() const {
  const auto switches = setup_.spec.modes.find(conversation_.permission_mode);
  if (switches != setup_.spec.modes.end() && !switches->second.agent_mode.empty()) {
    return switches->second.agent_mode;
  }
  const bool is_told = !mode_.empty() || option_of("mode", "mode") != nullptr;
  const bool must_ask = dialect_.is_claude && !dialect_.owner_settings && is_told;
  return std::string(must_ask ? kAskingMode : "");
}

Task<AcpAgent::Step> AcpAgent::choose_mode() {
  const std::string wanted = agent_mode();
  const AcpOption* option = option_of("mode", "mode");
  if (wanted.empty() || wanted == (option != nullptr ? option->current : mode_)) {
    co_return std::nullopt;
  }
  if (option == nullptr) {
    auto answer = co_await ask_well("session/set_mode",
                                    set_mode_params(conversation_.agent_session_id, wanted));
    if (!answer) co_return std::move(answer.error());
    co_return std::nullopt;
  }
  auto chosen = co_await choose("mode", "mode", wanted);
  if (!chosen) co_return std::move(chosen.error());
  if (*chosen) co_return std::nullopt;
  co_return agent_failed("agent_error",
                         fmt::format("{} does not take its mode {}, which the session's permission "
                                     "mode needs.",
                                     setup_.spec.name, wanted));
}

// Also when the agent says that it is so already: the adapter for Claude tells what the
// owner's settings say, even if they do not count.
Task<AcpAgent::Step> AcpAgent::choose_model() {
  const std::string& model = conversation_.model;
  if (model.empty()) co_return std::nullopt;
  // One that no app asked for is left out where the agent does not have it.
  const bool is_default = model == setup_.spec.default_model;
  const AcpOption* option = option_of("model", "model");
  if (option == nullptr && is_default) co_return std::nullopt;
  if (option == nullptr) {
    co_return Failure{
        .kind = Errc::invalid,
        .code = "model_not_supported",
        .message = fmt::format("{} does not let its model be chosen.", setup_.spec.name)};
  }
  const std::vector<std::string> known = option->values;
  auto chosen = co_await choose("model", "model", model);
  if (!chosen) co_return std::move(chosen.error());
  if (!*chosen && !is_default) co_return unknown_model(setup_.spec, model, known);
  co_return std::nullopt;
}

// After the model: which efforts there are depends on it.
Task<AcpAgent::Step> AcpAgent::choose_effort() {
  if (conversation_.effort.empty()) co_return std::nullopt;
  auto chosen = co_await choose("thought_level", "effort", conversation_.effort);
  if (!chosen) co_return std::move(chosen.error());
  if (*chosen) co_return std::nullopt;
  co_return Failure{.kind = Errc::invalid,
                    .code = "effort_not_supported",
                    .message = fmt::format("{} cannot be told this effort, or not with this model.",
                                           setup_.spec.name)};
}

}  // namespace clawdforge
