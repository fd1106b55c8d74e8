// The session that a chat is about: the calls to the gateway that concern it. Blocks.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/core/ask.h"
#include "cli/dialogue/chat_event.h"

namespace clawdforge {

// What a session is made with; empty: the gateway's default.
struct SessionWish {
  std::string agent;
  std::string model;
  std::string permission;
  std::string workspace;     // empty: an empty directory
  bool prefers_ask = false;  // mode `ask` where the agent and the policy allow it
};

struct TailEvent {
  std::uint64_t id = 0;
  ChatEvent event;
};

class ChatSession {
 public:
  // `gateway` outlives it.
  explicit ChatSession(const Destination& gateway) : gateway_(gateway) {}

  Asked<void> create(const SessionWish& wish);
  // An error if there is no such session.
  Asked<boost::json::object> attach(const std::string& id);

  const std::string& id() const { return id_; }
  const std::string& agent() const { return agent_; }
  const std::string& model() const { return model_; }

  Asked<boost::json::object> state() const;
  Asked<void> cancel() const;
  Asked<void> close() const;
  Asked<boost::json::object> files() const;
  Asked<boost::json::object> agents() const;
  Asked<std::vector<AgentQuestion>> questions() const;
  // With the option of this kind, or the plain decision where the question has none.
  Asked<void> answer(const AgentQuestion& question, std::string_view option_kind) const;
  Asked<std::string> upload(const std::string& path) const;

  // A page of events after this number.
  Asked<std::vector<TailEvent>> events(std::uint64_t after) const;

 private:
  Asked<boost::json::object> call(std::string method, std::string_view path,
                                  std::string body = {}) const;

  const Destination& gateway_;
  std::string id_;
  std::string agent_;
  std::string model_;
};

}  // namespace clawdforge
