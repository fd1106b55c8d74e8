// How an AcpxAgent opens a conversation, and closes it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/acpx/acpx_agent.h"
#include "agent/acpx/acpx_failure.h"
#include "agent/failure/agent_failure.h"
#include "base/async/async_tokens.h"

namespace clawdforge {

Task<Opening> AcpxAgent::open(Conversation conversation) {
  pipe_.begin_opening();
  call_ = {
      .program = program_, .agent = setup_.spec.command, .conversation = std::move(conversation)};
  if (call_.conversation.mcp_servers.find_first_not_of(" \t\r\n[]") != std::string::npos) {
    // In the session's own temporary directory, which goes with the session: it may hold
    // keys, and acpx reads it again whenever it starts the agent.
    config_ = call_.conversation.temp_dir + "/acpx-mcp.json";
  }
  auto failure = co_await open_in_steps();
  pipe_.end_opening();
  if (failure) co_return std::unexpected(std::move(*failure));
  // Whether the agent can load is for acpx to know; it keeps the record in any case.
  co_return Opened{.agent_session_id = fmt::format("{}{}", kAcpxIdPrefix, record_id_),
                   .is_loaded = is_loaded_,
                   .can_load = true,
                   .version = setup_.lore == nullptr ? "" : setup_.lore->version};
}

Task<AcpxAgent::Step> AcpxAgent::open_in_steps() {
  const Conversation& wanted = call_.conversation;
  if (wanted.system_mode == SystemMode::replace && !wanted.system.empty()) {
    co_return system_mode_not_supported(setup_.spec);
  }
  if (auto failure = co_await open_session()) co_return failure;
  if (is_loaded_ || call_.conversation.effort.empty()) co_return std::nullopt;
  co_return co_await choose_effort();
}

// One that was asleep is not started: the first prompt does that, and tells what became of
// the conversation.
Task<AcpxAgent::Step> AcpxAgent::open_session() {
  const Conversation& conversation = call_.conversation;
  const bool is_known = conversation.agent_session_id.starts_with(kAcpxIdPrefix);
  auto answer = co_await ask(is_known ? acpx_ensure(call_, config_) : acpx_new(call_, config_));
  if (!answer) co_return std::move(answer.error());
  if (const auto& fault = answer->fault) {
    if (auto failure = model_failure(*fault, setup_.spec, conversation.model)) co_return failure;
    co_return failure_of(*fault, setup_.spec, setup_.now(), setup_.secrets);
  }
  record_id_ = answer->record_id;
  if (record_id_.empty() || record_id_.size() > kAgentIdBytesMax) {
    co_return agent_failed(
        "agent_nonsense",
        fmt::format("acpx began a session of {} without an id, or with one of more than {} bytes.",
                    setup_.spec.name, kAgentIdBytesMax));
  }
  is_loaded_ = is_known && !answer->is_created;
  has_talked_ = is_loaded_ && !conversation.is_unasked;
  owes_system_ = (!is_loaded_ || conversation.is_unasked) && !conversation.system.empty();
  if (is_loaded_) cost_.begin_at(conversation.cost_usd_so_far);
  co_return std::nullopt;
}

// acpx remembers it, and tells it to the agent again whenever it starts it. Not so with a
// model: after it has told that, it takes the agent's usual effort for the wanted one.
Task<AcpxAgent::Step> AcpxAgent::choose_effort() {
  const Failure not_supported{
      .kind = Errc::invalid,
      .code = "effort_not_supported",
      .message =
          fmt::format("{} cannot be told this effort, or not with this model.", setup_.spec.name)};
  if (!call_.conversation.model.empty()) co_return not_supported;
  auto record = co_await ask(acpx_show(call_));
  if (!record) co_return std::move(record.error());
  auto found = std::ranges::find(record->options, "thought_level", &AcpOption::category);
  if (found == record->options.end()) {
    found = std::ranges::find(record->options, "effort", &AcpOption::id);
  }
  if (found == record->options.end()) co_return not_supported;
  auto answer = co_await ask(acpx_set(call_, found->id, call_.conversation.effort));
  if (!answer) co_return std::move(answer.error());
  const auto& fault = answer->fault;
  if (!fault) co_return std::nullopt;
  if (!is_recognised(*fault)) co_return not_supported;
  co_return failure_of(*fault, setup_.spec, setup_.now(), setup_.secrets);
}

// Runs one control command to its end. Whatever it says is an answer.
Task<AcpxAgent::Answered> AcpxAgent::ask(HostOrder order) {
  pipe_.begin_step();
  const std::uint32_t number = start(Verb::control, std::move(order));
  AgentNews nothing;  // no turn is under way
  bool has_more = true;
  while (has_more && !operations_[number].status) {
    take_frames(nothing);
    if (operations_[number].status) break;
    if (co_await take_large_line(&nothing)) continue;
    has_more = co_await read_more();
  }
  Operation operation = std::move(operations_[number]);
  operations_.erase(number);
  if (!operation.status) {
    co_return std::unexpected(co_await pipe_.cause_of_end());
  }
  if (operation.answer) co_return std::move(*operation.answer);
  Failure failure = failure_of_acpx(setup_.spec, *operation.status, pipe_.error_tail());
  pipe_.report(failure);
  co_return std::unexpected(std::move(failure));
}

// Politely, within its time: the agent is told, and acpx's queue owner ends. What acpx
// answers does not matter, and a session that it does not know is closed as well.
Task<void> AcpxAgent::close_session() {
  if (pipe_.is_ending()) co_return;
  close_limit_.emplace(pipe_.executor(), kAcpxCloseMax);
  pipe_.spawn(limit_close());
  const std::uint32_t number = start(Verb::control, acpx_close(call_));
  const auto is_over = [&] { return pipe_.is_ending() || operations_[number].status; };
  AgentNews unheard;
  while (!is_over()) {
    if (pipe_.is_read()) {
      co_await pipe_.wait_for_nudge();
      continue;
    }
    take_frames(unheard);
    unheard = {};
    if (is_over()) break;
    if (co_await take_large_line(&unheard)) continue;
    const bool has_more = co_await read_more();
    if (!has_more) break;
  }
  close_limit_->cancel();
}

Task<void> AcpxAgent::limit_close() {
  if (!close_limit_) co_return;
  const auto [error] = co_await close_limit_->async_wait(kAwait);
  if (!error) pipe_.stop();
}

}  // namespace clawdforge
