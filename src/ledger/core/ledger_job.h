// LedgerJob is one call on its way: made on the io thread, attempted on the worker,
// answered on the io thread again. It owns all it needs, so it may be answered after its
// ledger has gone.
#pragma once

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "base/async/async.h"
#include "base/async/worker_job.h"
#include "base/refusals.h"
#include "ledger/core/sql_driver.h"

namespace clawdforge {

// Whether the caller may be answered "it is not known whether this was done" when the worker is
// stuck. Not where the caller would make the same call again: it might be done twice.
enum class OnStall { refuse, wait };

class LedgerJob : public WorkerJob {
 public:
  LedgerJob(IoExecutor executor, Access access, OnStall on_stall, std::size_t bytes)
      : WorkerJob(executor), access_(access), on_stall_(on_stall), bytes_(bytes) {}

  Access access() const { return access_; }
  OnStall on_stall() const { return on_stall_; }
  // About how much it writes; zero: a few rows.
  std::size_t bytes() const { return bytes_; }
  std::chrono::steady_clock::time_point since() const { return since_; }

  // Worker, inside a transaction. May come again after a rollback: the last time counts.
  virtual void attempt(SqlDriver& driver) = 0;
  virtual void refuse(Failure error) = 0;
  // Of the last attempt; null if it went well.
  virtual const Failure* error() const = 0;

  // Io thread, once: the waiting coroutine goes on inside, unless it does so already.
  virtual void answer() = 0;
  // Io thread, before that: the waiting coroutine goes on soon.
  virtual void answer_early(Failure error) = 0;

 private:
  const Access access_;
  const OnStall on_stall_;
  const std::size_t bytes_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

template <class T>
using LedgerWork = std::move_only_function<Result<T>(SqlDriver&)>;

template <class T>
class LedgerCall final : public LedgerJob {
 public:
  using Handler = std::move_only_function<void(Result<T>)>;

  LedgerCall(IoExecutor executor, Access access, OnStall on_stall, std::size_t bytes,
             LedgerWork<T> work, Handler handler)
      : LedgerJob(executor, access, on_stall, bytes),
        work_(std::move(work)),
        handler_(std::move(handler)) {}

  void attempt(SqlDriver& driver) override {
    try {
      result_ = work_(driver);
    } catch (const std::bad_alloc&) {
      result_ = ledger_unavailable("memory has run out");
    } catch (const std::exception& thrown) {
      result_ = fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
                     thrown.what());
    }
  }
  void refuse(Failure error) override { result_ = std::unexpected(std::move(error)); }
  const Failure* error() const override { return result_ ? nullptr : &result_.error(); }
  void answer() override {
    if (handler_) std::exchange(handler_, {})(std::move(result_));
  }
  void answer_early(Failure error) override {
    boost::asio::post(executor(),
                      [handler = std::exchange(handler_, {}), error = std::move(error)]() mutable {
                        handler(std::unexpected(std::move(error)));
                      });
  }

 private:
  LedgerWork<T> work_;
  Handler handler_;
  Result<T> result_ = fail(Errc::internal, "internal", {}, "the ledger did not try");
};

}  // namespace clawdforge
