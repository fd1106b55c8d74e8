// Pool bounds how many agent processes live at once. A Slot is the right to keep one
// alive: it waits its turn, and dropping it gives the place back. Both belong to the io
// thread; the Pool outlives every Slot it handed out.
//
// Fair between apps, by their weights (start-time fair queueing): each place that an app gets moves
// its turn on by one over its weight, and a free place goes to the app whose turn is first; among
// equals to the one with the fewest places for its weight, then to the one that was served longest
// ago. An app that comes later begins where the others are, so one with many waiting runs delays
// another app's first one by no more than the run that ends next, and no app gets credit for times
// in which it did not wait.
//
// While other apps ask, one app may be held to a part of the places: what its processes take of the
// machine slows the others down, also where those have places. An app alone gets all.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/strong_id.h"
#include "base/telemetry/metrics.h"

namespace clawdforge {

class Pool;

// Errc::unavailable "memory_full": what the work of a pool that is held is told at last.
std::unexpected<Failure> memory_full();

class Slot {
 public:
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Returns when the place is ours, or will never be. Once.
  Task<void> settled();
  bool is_granted() const { return state_ == State::granted; }
  // Another app needed the place in the queue more.
  bool is_displaced() const { return state_ == State::displaced; }

  // Ends the wait. A place already granted stays.
  void withdraw();

  // The work is answered, and only its cleaning up still needs the place: one more may wait for it
  // meanwhile.
  void expect_end();

 private:
  friend class Pool;
  enum class State { waiting, granted, displaced, withdrawn };
  Slot(Pool& pool, AppName app);

  Pool& pool_;
  const AppName app_;
  State state_ = State::waiting;
  bool is_ending_ = false;
  Signal settled_;
};

class Pool {
 public:
  struct Options {
    std::size_t slots_max;
    std::size_t waiting_max;
    // Places of one app while another app has asked for one within `others_ask_for`; 0: all.
    std::size_t shared_slots_max = 0;
    std::chrono::milliseconds others_ask_for = std::chrono::seconds(2);
  };

  Pool(Options options, Gauge& running, Gauge& waiting);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // A place, or a place in the queue. Errc::unavailable "queue_full" when too many wait,
  // unless an app waits for more than one place more than this one: then its newest is
  // displaced. A place whose work is answered counts as free here: the newcomer waits for it.
  // `weight` is the app's share from now on, above zero.
  Result<std::unique_ptr<Slot>> enter(AppName app, double weight = 1);

  // What one that was displaced is told, too.
  static std::unexpected<Failure> full();

  // While it is held, no place is given, and those that come wait: the agents have no memory left.
  // enter() then refuses with "memory_full" where it would with "queue_full".
  void hold(bool is_held);
  bool is_held() const { return is_held_; }

  std::size_t running() const { return running_; }
  std::size_t waiting() const { return waiting_; }

 private:
  friend class Slot;
  struct Share {
    std::size_t running = 0;
    std::uint64_t served = 0;  // when it was last given a place
    double weight = 1;
    double turn = 0;  // when it is to be served, as virtual_time_ counts; also when it comes again
    std::list<Slot*> waiting;  // the oldest first
  };
  using Shares = std::map<AppName, Share>;
  struct Entry {
    AppName app;
    std::chrono::steady_clock::time_point at;
  };

  void leave(Slot& slot);
  void settle(Slot& slot, Slot::State state);
  void serve_waiting();
  bool is_full() const;
  bool make_room_for(const Share& newcomer);
  void note_entry(const AppName& app);
  bool do_others_ask(const AppName& app) const;
  bool may_be_served(const Shares::value_type& entry) const;
  void forget_idle();
  void show();

  const Options options_;
  Gauge& shown_running_;
  Gauge& shown_waiting_;
  Shares shares_;
  std::size_t running_ = 0;
  std::size_t ending_ = 0;  // of those that run
  std::size_t waiting_ = 0;
  bool is_held_ = false;
  std::uint64_t served_ = 0;
  double virtual_time_ = 0;  // the turn of the app that was served last
  Entry last_entry_;         // who asked last, and who before it that was another app
  Entry other_entry_;
};

}  // namespace clawdforge
