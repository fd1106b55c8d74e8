#include "quota/pool.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kFullRetryAfter{2};
constexpr std::chrono::seconds kMemoryRetryAfter{5};

}  // namespace

std::unexpected<Failure> memory_full() {
  return fail_for_now(
      Errc::unavailable, "memory_full",
      "The agents of this gateway take as much memory as they may; it is safe to try "
      "again later.",
      kMemoryRetryAfter);
}

Slot::Slot(Pool& pool, AppName app) : pool_(pool), app_(std::move(app)) {}

Slot::~Slot() { pool_.leave(*this); }

Task<void> Slot::settled() {
  while (state_ == State::waiting) co_await settled_.wait();
}

void Slot::withdraw() {
  if (state_ == State::waiting) pool_.settle(*this, State::withdrawn);
}

void Slot::expect_end() {
  if (state_ != State::granted || std::exchange(is_ending_, true)) return;
  ++pool_.ending_;
}

Pool::Pool(Options options, Gauge& running, Gauge& waiting)
    : options_(options), shown_running_(running), shown_waiting_(waiting) {}

Pool::~Pool() { assert(running_ == 0 && waiting_ == 0); }

Result<std::unique_ptr<Slot>> Pool::enter(AppName app, double weight) {
  note_entry(app);
  Share& share = shares_[app];
  share.weight = weight;
  if (is_full() && !make_room_for(share)) {
    forget_idle();
    return is_held_ ? memory_full() : full();
  }
  std::unique_ptr<Slot> slot(new Slot(*this, std::move(app)));
  if (share.waiting.empty()) share.turn = std::max(share.turn, virtual_time_);
  share.waiting.push_back(slot.get());
  ++waiting_;
  serve_waiting();
  return slot;
}

void Pool::note_entry(const AppName& app) {
  if (app != last_entry_.app) other_entry_ = std::move(last_entry_);
  last_entry_ = {app, std::chrono::steady_clock::now()};
}

bool Pool::do_others_ask(const AppName& app) const {
  const Entry& other = last_entry_.app == app ? other_entry_ : last_entry_;
  return !other.app.empty() &&
         std::chrono::steady_clock::now() - other.at < options_.others_ask_for;
}

// An app that is held to a part has some of its own under way, and is looked at when one ends.
bool Pool::may_be_served(const Shares::value_type& entry) const {
  if (entry.second.waiting.empty()) return false;
  const bool is_at_its_part =
      options_.shared_slots_max > 0 && entry.second.running >= options_.shared_slots_max;
  return !is_at_its_part || !do_others_ask(entry.first);
}

// While any wait, all places are taken, or the rest is kept for other apps; so this bounds what
// waits by the limit, and as many more as places are being cleaned up.
bool Pool::is_full() const {
  return running_ - ending_ + waiting_ >= options_.slots_max + options_.waiting_max;
}

std::unexpected<Failure> Pool::full() {
  return fail_for_now(Errc::unavailable, "queue_full",
                      "Too many are waiting already; try again later.", kFullRetryAfter);
}

// One greedy app must not keep the others out of the queue.
bool Pool::make_room_for(const Share& newcomer) {
  const auto greediest = std::ranges::max_element(
      shares_, {}, [](const auto& entry) { return entry.second.waiting.size(); });
  if (greediest == shares_.end()) return false;
  if (greediest->second.waiting.size() <= newcomer.waiting.size() + 1) return false;
  settle(*greediest->second.waiting.back(), Slot::State::displaced);
  return true;
}

// Takes a waiting slot out of the queue.
void Pool::settle(Slot& slot, Slot::State state) {
  assert(slot.state_ == Slot::State::waiting);
  slot.state_ = state;
  shares_.at(slot.app_).waiting.remove(&slot);
  --waiting_;
  slot.settled_.notify_all();
  show();
}

void Pool::serve_waiting() {
  while (!is_held_ && running_ < options_.slots_max && waiting_ > 0) {
    const auto next = std::ranges::min_element(shares_, {}, [&](const auto& entry) {
      const Share& share = entry.second;
      const double held = static_cast<double>(share.running) / share.weight;
      return std::tuple(!may_be_served(entry), share.turn, held, share.served);
    });
    if (next == shares_.end() || !may_be_served(*next)) break;
    Share& share = next->second;
    virtual_time_ = share.turn;
    share.turn += 1 / share.weight;
    ++share.running;
    share.served = ++served_;
    ++running_;
    settle(*share.waiting.front(), Slot::State::granted);
  }
  forget_idle();
  show();
}

void Pool::hold(bool is_held) {
  if (std::exchange(is_held_, is_held) && !is_held) serve_waiting();
}

void Pool::leave(Slot& slot) {
  if (slot.state_ == Slot::State::waiting) settle(slot, Slot::State::withdrawn);
  if (slot.state_ == Slot::State::granted) {
    --shares_.at(slot.app_).running;
    --running_;
    if (slot.is_ending_) --ending_;
  }
  serve_waiting();
}

// Whose turn it is matters only while a slot waits; so names do not pile up.
void Pool::forget_idle() {
  std::erase_if(shares_, [this](const auto& entry) {
    const Share& share = entry.second;
    const bool is_past = waiting_ == 0 || share.turn <= virtual_time_;
    return share.running == 0 && share.waiting.empty() && is_past;
  });
}

void Pool::show() {
  shown_running_.set(static_cast<std::int64_t>(running_));
  shown_waiting_.set(static_cast<std::int64_t>(waiting_));
}

}  // namespace clawdforge
