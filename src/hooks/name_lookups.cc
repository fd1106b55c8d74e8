#include "hooks/name_lookups.h"

#include <netdb.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace clawdforge {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

std::unexpected<Failure> not_found(std::string why) {
  return fail(Errc::unavailable, "webhook_failed", std::move(why));
}

error_code error_of(int code) {
  if (code == EAI_SYSTEM) return {errno, boost::system::system_category()};
  if (code == EAI_AGAIN) return asio::error::host_not_found_try_again;
  if (code == EAI_MEMORY) return asio::error::no_memory;
  return asio::error::host_not_found;
}

}  // namespace

struct NameLookups::Lookup {
  Signal done;
  std::optional<Answer> answer;
};

// What the threads know of who asked. The io thread writes it under the lock, and reads it without.
struct NameLookups::Home {
  std::mutex mutex;
  IoExecutor executor;
  NameLookups* owner;
};

NameLookups::NameLookups(IoExecutor executor) : home_(new Home{{}, std::move(executor), this}) {}

// A thread that posts holds the lock, so none does afterwards.
NameLookups::~NameLookups() {
  const std::lock_guard lock(home_->mutex);
  home_->owner = nullptr;
}

NameLookups::Answer NameLookups::look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) return {error_of(code), {}};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  Answer answer;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.resize(entry->ai_addrlen);
    answer.addresses.push_back(endpoint.address());
  }
  if (answer.addresses.empty()) answer.error = asio::error::host_not_found;
  return answer;
}

Result<std::shared_ptr<NameLookups::Lookup>> NameLookups::begin(const std::string& host) {
  if (const auto known = under_way_.find(host); known != under_way_.end()) return known->second;
  if (under_way_.size() >= kLookupsMax) return not_found("too many names are being looked up");
  try {
    std::thread([home = home_, host] {
      Answer answer = look_up(host);
      const std::lock_guard lock(home->mutex);
      if (home->owner == nullptr) return;
      asio::post(home->executor, [home, host, answer = std::move(answer)]() mutable {
        if (home->owner != nullptr) home->owner->end(host, std::move(answer));
      });
    }).detach();
  } catch (const std::system_error& error) {
    return not_found(error.code().message());
  }
  return under_way_.emplace(host, std::make_shared<Lookup>()).first->second;
}

void NameLookups::end(const std::string& host, Answer answer) {
  const auto found = under_way_.find(host);
  if (found == under_way_.end()) return;
  const std::shared_ptr<Lookup> lookup = std::move(found->second);
  under_way_.erase(found);
  lookup->answer = std::move(answer);
  lookup->done.notify_all();
}

Async<NameLookups::Addresses> NameLookups::find(std::string host, Deadline deadline) {
  auto begun = begin(host);
  if (!begun) co_return std::unexpected(std::move(begun.error()));
  const std::shared_ptr<Lookup> lookup = std::move(*begun);
  if (!lookup->answer) co_await lookup->done.wait_until(deadline);
  const std::optional<Answer>& answer = lookup->answer;
  if (!answer) co_return not_found("the name of the host was not looked up in time");
  if (answer->error) co_return not_found(answer->error.message());
  co_return answer->addresses;
}

}  // namespace clawdforge
