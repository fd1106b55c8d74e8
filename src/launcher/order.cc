#include "launcher/order.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mman.h>

namespace launcher {

namespace {

constexpr unsigned long kDayMs = 24UL * 60 * 60 * 1000;
// More than the kernel takes as a program's arguments.
constexpr unsigned long kOrderBytesMax = 16UL << 20;

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

// The texts of the order, one after the other. The last byte of all is a zero byte.
class Texts {
 public:
  Texts(char* first, char* end) : next_(first), end_(end) {}

  bool is_over() const { return next_ == end_; }
  // Null: there is none.
  char* take() {
    if (is_over()) return nullptr;
    char* text = next_;
    while (*next_ != '\0') ++next_;
    ++next_;
    return text;
  }

 private:
  char* next_;
  char* end_;
};

bool take_number(const char* value, unsigned long& number) {
  return value != nullptr && parse_number(value, number);
}

bool take_milliseconds(const char* value, long& milliseconds) {
  unsigned long number = 0;
  if (!take_number(value, number) || number > kDayMs) return false;
  milliseconds = static_cast<long>(number);
  return true;
}

bool take_switch(const char* value, bool& is_on) {
  unsigned long number = 0;
  if (!take_number(value, number) || number > 1) return false;
  is_on = number == 1;
  return true;
}

bool is_absolute(const char* path) { return path != nullptr && path[0] == '/'; }

bool add_place(Order& order, PlaceKind kind, const char* path, const char* target) {
  if (!is_absolute(path) || path[1] == '\0' || order.place_count == kPlacesMax) return false;
  order.places[order.place_count++] = {kind, path, target};
  return true;
}

// False, with `is_known` unchanged: another field has this name.
bool take_place(const char* name, Texts& values, Order& order, bool& is_known) {
  struct Known {
    const char* name;
    PlaceKind kind;
  };
  constexpr Known kKnown[] = {{"ro", PlaceKind::read},       {"ro?", PlaceKind::read_if_there},
                              {"rw", PlaceKind::write},      {"cover", PlaceKind::cover},
                              {"tmp", PlaceKind::temporary}, {"link", PlaceKind::link}};
  for (const Known& known : kKnown) {
    if (!are_equal(name, known.name)) continue;
    is_known = true;
    const char* path = values.take();
    const char* target = known.kind == PlaceKind::link ? values.take() : nullptr;
    if (known.kind == PlaceKind::link && target == nullptr) return false;
    return add_place(order, known.kind, path, target);
  }
  return false;
}

// Fields whose value is one number. False, with `is_known` unchanged: another field has this name.
bool take_number_field(const char* name, const char* value, Order& order, bool& is_known) {
  struct Known {
    const char* name;
    unsigned long Order::* member;
  };
  constexpr Known kKnown[] = {
      {"pages-max", &Order::pages_max},       {"count-max", &Order::count_max},
      {"processes", &Order::processes_max},   {"data-bytes", &Order::data_bytes_max},
      {"file-bytes", &Order::file_bytes_max}, {"listener", &Order::listener_port}};
  for (const Known& known : kKnown) {
    if (!are_equal(name, known.name)) continue;
    is_known = true;
    return take_number(value, order.*known.member);
  }
  return false;
}

// Fields that are on or off; as above.
bool take_switch_field(const char* name, const char* value, Order& order, bool& is_known) {
  struct Known {
    const char* name;
    bool Order::* member;
  };
  constexpr Known kKnown[] = {{"pid-namespace", &Order::is_pid_namespace_wanted},
                              {"root", &Order::is_root_wanted},
                              {"rules", &Order::are_rules_wanted},
                              {"oom-polled", &Order::is_oom_polled},
                              {"network", &Order::is_network_wanted},
                              {"filter", &Order::is_filter_wanted}};
  for (const Known& known : kKnown) {
    if (!are_equal(name, known.name)) continue;
    is_known = true;
    return take_switch(value, order.*known.member);
  }
  return false;
}

// Fields whose value is one absolute path; as above.
bool take_path_field(const char* name, const char* value, Order& order, bool& is_known) {
  struct Known {
    const char* name;
    const char* Order::* member;
  };
  constexpr Known kKnown[] = {{"cwd", &Order::working_dir},
                              {"hide", &Order::hidden_dir},
                              {"busy", &Order::busy_path},
                              {"oom-count", &Order::oom_count}};
  for (const Known& known : kKnown) {
    if (!are_equal(name, known.name)) continue;
    is_known = true;
    order.*known.member = value;
    return is_absolute(value);
  }
  return false;
}

// One field with its values. False: it makes no sense.
bool take_field(const char* name, Texts& values, Order& order, int& argument_count) {
  bool is_place = false;
  const bool is_placed = take_place(name, values, order, is_place);
  if (is_place) return is_placed;
  char* value = values.take();
  if (value == nullptr) return false;
  if (are_equal(name, "arg")) {
    order.program[argument_count++] = value;
    return true;
  }
  bool is_known = false;
  using Take = bool (*)(const char*, const char*, Order&, bool&);
  constexpr Take kTakes[] = {take_number_field, take_switch_field, take_path_field};
  for (const Take take : kTakes) {
    const bool is_taken = take(name, value, order, is_known);
    if (is_known) return is_taken;
  }
  if (are_equal(name, "grace-ms")) return take_milliseconds(value, order.grace_ms);
  if (are_equal(name, "inside-id")) {
    order.is_inside_id_wanted = true;
    return take_number(value, order.inside_id);
  }
  if (are_equal(name, "descriptors")) {
    order.is_soft_limit_wanted = true;
    return take_number(value, order.descriptors_soft);
  }
  if (are_equal(name, "busy-ms")) return take_milliseconds(value, order.busy_ms);
  if (are_equal(name, "cgroup") && order.cgroup_count < kCgroupsMax) {
    order.cgroups[order.cgroup_count++] = value;
    return is_absolute(value);
  }
  if (!are_equal(name, "keep") || order.kept_count == kKeptDirsMax) return false;
  order.kept[order.kept_count++] = value;
  return is_absolute(value);
}

// The first field, without which nothing else is looked at.
bool takes_version(Texts& texts) {
  const char* name = texts.take();
  unsigned long version = 0;
  return name != nullptr && are_equal(name, "version") && take_number(texts.take(), version) &&
         version == kOrderVersion;
}

Answer map_memory(unsigned long bytes, long flags, long file) {
  return call(SYS_mmap, nullptr, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | flags, file, 0L);
}

// A pipe that has just been made takes a line this short at once and whole. If the
// gateway has closed its end, the report is lost, and it is not needed then.
void report(const Line& line) { call(SYS_write, kReport, line.text(), line.size()); }

}  // namespace

Answer read_order(Order& order) {
  struct statx found = {};
  Answer answer = call(SYS_statx, kOrder, "", AT_EMPTY_PATH, STATX_SIZE, &found);
  if (answer < 0) return answer;
  const unsigned long size = found.stx_size;
  if (size == 0 || size > kOrderBytesMax) return -EINVAL;
  answer = map_memory(size, 0, kOrder);
  if (answer < 0) return answer;
  call(SYS_close, kOrder);
  auto* first = reinterpret_cast<char*>(answer);
  if (first[size - 1] != '\0') return -EINVAL;
  // Each argument has a name of four bytes before it, so there are fewer than this.
  answer = map_memory((size / 4 + 2) * sizeof(char*), MAP_ANONYMOUS, -1L);
  if (answer < 0) return answer;
  order.program = reinterpret_cast<char**>(answer);
  Texts texts(first, first + size);
  if (!takes_version(texts)) return -EPROTO;
  int argument_count = 0;
  while (!texts.is_over()) {
    if (!take_field(texts.take(), texts, order, argument_count)) return -EINVAL;
  }
  return order.working_dir == nullptr ? -EINVAL : 0;
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

void report_over_memory() { report(Line().add("over-memory 0\n")); }

void report_over_processes() { report(Line().add("over-processes 0\n")); }

void report_not_started(long error, const char* step) {
  const auto number = static_cast<unsigned long>(error);
  report(Line().add("not-started ").add(number).add(" ").add(step).add("\n"));
}

void give_up(const char* step, Answer answer) {
  report_not_started(-answer, step);
  end_process(1);
}

}  // namespace launcher
