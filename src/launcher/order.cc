#include "launcher/order.h"

namespace launcher {

namespace {

constexpr unsigned long kDayMs = 24UL * 60 * 60 * 1000;

bool parse_number(const char* text, unsigned long& number) {
  number = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    const auto digit = static_cast<unsigned long>(*text - '0');
    if (__builtin_mul_overflow(number, 10, &number)) return false;
    if (__builtin_add_overflow(number, digit, &number)) return false;
  }
  return true;
}

bool parse_milliseconds(const char* text, long& milliseconds) {
  unsigned long number = 0;
  if (!parse_number(text, number) || number > kDayMs) return false;
  milliseconds = static_cast<long>(number);
  return true;
}

// One step, with its value; `next` then stands behind it. False: it makes no sense.
bool parse_step(char**& next, Order& order) {
  const char* step = *next++;
  if (are_equal(step, "pid-namespace")) {
    order.is_pid_namespace_wanted = true;
    return true;
  }
  const char* value = *next;
  if (value == nullptr) return false;
  ++next;
  if (are_equal(step, "hide")) {
    order.hidden_dir = value;
    return true;
  }
  if (are_equal(step, "keep")) {
    if (order.kept_count == kKeptDirsMax) return false;
    order.kept[order.kept_count++] = value;
    return true;
  }
  if (are_equal(step, "busy")) {
    order.busy_path = value;
    return true;
  }
  if (are_equal(step, "busy-ms")) return parse_milliseconds(value, order.busy_ms);
  order.is_soft_limit_wanted = true;
  return are_equal(step, "descriptors") && parse_number(value, order.descriptors_soft);
}

// A pipe that has just been made takes a line this short at once and whole. If the
// gateway has closed its end, the report is lost, and it is not needed then.
void report(const Line& line) { call(SYS_write, kReport, line.text(), line.size()); }

}  // namespace

bool parse_order(int count, char** arguments, Order& order) {
  if (count < 2) return false;
  if (!parse_milliseconds(arguments[1], order.grace_ms)) return false;
  char** next = arguments + 2;
  while (*next != nullptr && !are_equal(*next, "--")) {
    if (!parse_step(next, order)) return false;
  }
  if (*next == nullptr || next[1] == nullptr) return false;
  order.working_dir = next[1];
  order.program = next + 2;
  return true;
}

Line& Line::add(const char* text) {
  while (*text != '\0' && size_ + 1 < sizeof text_) text_[size_++] = *text++;
  return *this;
}

Line& Line::add(unsigned long number) {
  char digits[24];
  char* first = digits + sizeof digits;
  *--first = '\0';
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  return add(first);
}

void report_exited(int code) {
  report(Line().add("exited ").add(static_cast<unsigned long>(code)).add("\n"));
}

void report_signaled(int number) {
  report(Line().add("signaled ").add(static_cast<unsigned long>(number)).add("\n"));
}

void report_not_started(long error, const char* step) {
  const auto number = static_cast<unsigned long>(error);
  report(Line().add("not-started ").add(number).add(" ").add(step).add("\n"));
}

void give_up(const char* step, Answer answer) {
  report_not_started(-answer, step);
  end_process(1);
}

}  // namespace launcher
