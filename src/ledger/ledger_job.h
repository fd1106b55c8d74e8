// LedgerJob is one call on its way: made on the io thread, attempted on the worker,
// answered on the io thread again. It owns all it needs, so it may be answered after its
// ledger has gone. It keeps the io_context from running dry until then.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "base/async.h"
#include "ledger/sql_driver.h"

namespace clawdforge {

class LedgerJob {
 public:
  LedgerJob(IoExecutor executor, Access access) : work_(executor), access_(access) {}
  virtual ~LedgerJob() = default;
  LedgerJob(const LedgerJob&) = delete;
  LedgerJob& operator=(const LedgerJob&) = delete;

  Access access() const { return access_; }
  std::chrono::steady_clock::time_point since() const { return since_; }

  // Worker, inside a transaction. May come again after a rollback: the last time counts.
  virtual void attempt(SqlDriver& driver) = 0;
  virtual void refuse(Error error) = 0;
  // Of the last attempt; null if it went well.
  virtual const Error* error() const = 0;

  // Io thread, once: the waiting coroutine goes on inside.
  virtual void answer() = 0;

 private:
  boost::asio::executor_work_guard<IoExecutor> work_;
  const Access access_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

template <class T>
using LedgerWork = std::move_only_function<Result<T>(SqlDriver&)>;

template <class T>
class LedgerCall final : public LedgerJob {
 public:
  using Handler = std::move_only_function<void(Result<T>)>;

  LedgerCall(IoExecutor executor, Access access, LedgerWork<T> work, Handler handler)
      : LedgerJob(executor, access), work_(std::move(work)), handler_(std::move(handler)) {}

  void attempt(SqlDriver& driver) override {
    try {
      result_ = work_(driver);
    } catch (const std::exception& thrown) {
      result_ = fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
                     thrown.what());
    }
  }
  void refuse(Error error) override { result_ = std::unexpected(std::move(error)); }
  const Error* error() const override { return result_ ? nullptr : &result_.error(); }
  void answer() override { handler_(std::move(result_)); }

 private:
  LedgerWork<T> work_;
  Handler handler_;
  Result<T> result_ = fail(Errc::internal, "internal", {}, "the ledger did not try");
};

}  // namespace clawdforge
