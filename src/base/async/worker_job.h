// WorkerJob is what calls to a worker thread have in common: each is made on the io thread, done on
// the worker's and answered on the io thread again. It keeps the io_context from running dry until
// then.
//
// When the worker is stuck the io thread may answer a call before. Either the worker takes it or
// the io thread withdraws it, whichever is first: a call that was withdrawn is never done; of one
// that was taken it is not known yet.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/intrusive/list.hpp>

#include "base/async/async.h"

namespace clawdforge {

class WorkerJob : public boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  explicit WorkerJob(IoExecutor executor) : guard_(executor) {}
  virtual ~WorkerJob() = default;
  WorkerJob(const WorkerJob&) = delete;
  WorkerJob& operator=(const WorkerJob&) = delete;

  // The worker. False: it was withdrawn.
  bool take() { return !is_decided_.exchange(true); }
  // The io thread. False: the worker has it.
  bool withdraw() { return !is_decided_.exchange(true); }

  // The io thread: out of the list of those that wait for an answer.
  void unlink() {
    if (is_linked()) list_base_hook::unlink();
  }

 protected:
  IoExecutor executor() const { return guard_.get_executor(); }

 private:
  boost::asio::executor_work_guard<IoExecutor> guard_;
  std::atomic<bool> is_decided_ = false;
};

// The io thread's: the jobs that have no answer yet.
template <class Job>
using WorkerJobList = boost::intrusive::list<Job, boost::intrusive::constant_time_size<false>>;

}  // namespace clawdforge
