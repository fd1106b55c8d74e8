#include "base/async/task_group.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/system/system_error.hpp>
#include <cassert>
#include <exception>

namespace clawdforge {
namespace asio = boost::asio;

namespace {

bool is_cancellation(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

TaskGroup::TaskGroup(IoExecutor executor) : executor_(executor) {}

TaskGroup::~TaskGroup() { assert(members_.empty()); }

void TaskGroup::spawn(Task<void> task) {
  const auto member = members_.emplace(members_.end());
  auto ended = [this, member](std::exception_ptr failure) {
    members_.erase(member);
    if (members_.empty()) emptied_.notify_all();
    if (failure && !(cancelled_ && is_cancellation(failure))) std::rethrow_exception(failure);
  };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(member->slot(), std::move(ended)));
}

void TaskGroup::cancel() {
  assert(executor_.running_in_this_thread());
  cancelled_ = true;
  // A member may end, and leave the list, while it is being told.
  for (auto next = members_.begin(); next != members_.end();) {
    const auto member = next++;
    member->emit(asio::cancellation_type::terminal);
  }
}

Task<void> TaskGroup::join() {
  while (!members_.empty()) co_await emptied_.wait();
}

}  // namespace clawdforge
