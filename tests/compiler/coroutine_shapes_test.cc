// A trial of the compiler, not of clawdforge: coroutines that await calls with temporaries, braced
// objects and lambdas in every shape that our code has. Some compilers (g++ 12 for one) destroy
// such temporaries twice or never. Each shape runs to its end, and again once for each point where
// it is suspended and destroyed there; every object must have been destroyed exactly once.
#include <array>
#include <expected>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "task.h"

namespace trial {
namespace {

// What the shapes call. Each suspends while it holds its parameters.

Task<int> take(Counted counted) {
  co_await Pause{};
  co_return counted.value();
}

Task<int> look(const Counted& counted) {
  co_await Pause{};
  co_return counted.value();
}

Task<Counted> make(int value) {
  co_await Pause{};
  co_return Counted(value);
}

Task<int> take_two(Counted first, Counted second) {
  co_await Pause{};
  co_return first.value() + second.value();
}

Task<int> take_default(int value, Counted counted = Counted(30)) {
  co_await Pause{};
  co_return value + counted.value();
}

struct Order {
  Counted first;
  Counted second = Counted(20);
  std::string name = "a name that is too long to be kept in the string itself";
};

Task<int> carry_out(Order order) {
  co_await Pause{};
  co_return order.first.value() + order.second.value();
}

struct Outer {
  Order order;
  std::vector<Counted> more;
};

Task<int> carry_out_all(Outer outer) {
  int sum = co_await carry_out(std::move(outer.order));
  for (const Counted& counted : outer.more) sum += counted.value();
  co_return sum;
}

Task<int> sum(std::vector<Counted> all) {
  co_await Pause{};
  int total = 0;
  for (const Counted& counted : all) total += counted.value();
  co_return total;
}

Task<std::vector<Counted>> list(int count) {
  co_await Pause{};
  std::vector<Counted> all;
  for (int value = 1; value <= count; ++value) all.emplace_back(value);
  co_return all;
}

Task<int> call(std::move_only_function<int()> function) {
  co_await Pause{};
  co_return function();
}

template <class Function>
Task<int> call_any(Function function) {
  co_await Pause{};
  co_return function();
}

Task<int> take_pointer(std::unique_ptr<Counted> pointer) {
  co_await Pause{};
  co_return pointer->value();
}

Task<std::optional<Counted>> maybe(Counted counted) {
  co_await Pause{};
  co_return std::optional<Counted>(std::move(counted));
}

Task<std::expected<Counted, std::string>> expect(Counted counted) {
  co_await Pause{};
  if (counted.value() < 0) co_return std::unexpected("a reason that is longer than a short string");
  co_return std::expected<Counted, std::string>(std::move(counted));
}

Task<std::tuple<Counted, Counted>> pair(Counted first, Counted second) {
  co_await Pause{};
  co_return std::tuple(std::move(first), std::move(second));
}

Task<int> fail(Counted counted) {
  co_await Pause{};
  throw std::runtime_error(std::to_string(counted.value()));
}

Counted throw_instead() { throw std::runtime_error("no object"); }

Task<int> length(std::string text) {
  co_await Pause{};
  co_return static_cast<int>(text.size());
}

class Maker {
 public:
  explicit Maker(Counted counted) : counted_(std::move(counted)) {}
  Task<int> value() const {
    co_await Pause{};
    co_return counted_.value();
  }

 private:
  Counted counted_;
};

// An awaited object with a destructor of its own.
struct Waiter {
  Counted counted;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const noexcept { suspended = handle; }
  int await_resume() const { return counted.value(); }
};

Waiter waiter(Counted counted) { return {std::move(counted)}; }

// The shapes.

Task<int> temporary() { co_return co_await take(Counted(1)); }

Task<int> moved() {
  Counted counted(1);
  co_return co_await take(std::move(counted));
}

Task<int> copied() {
  const Counted counted(1);
  const int first = co_await take(counted);
  co_return first + counted.value();
}

Task<int> bound_to_reference() { co_return co_await look(Counted(1)); }

Task<int> two_temporaries() { co_return co_await take_two(Counted(1), Counted(2)); }

Task<int> default_argument() { co_return co_await take_default(1); }

Task<int> braced() { co_return co_await carry_out({.first = Counted(1)}); }

Task<int> braced_whole() {
  co_return co_await carry_out({.first = Counted(1), .second = Counted(2), .name = "short"});
}

Task<int> braced_and_named() { co_return co_await carry_out(Order{.first = Counted(1)}); }

Task<int> braced_from_moved() {
  Counted counted(1);
  std::string name(100, 'x');
  co_return co_await carry_out({.first = std::move(counted), .name = std::move(name)});
}

Task<int> braced_in_braces() {
  co_return co_await carry_out_all(
      {.order = {.first = Counted(1)}, .more = {Counted(3), Counted(4)}});
}

Task<int> braced_from_awaited() {
  co_return co_await carry_out({.first = co_await make(1), .second = co_await make(2)});
}

Task<int> initializer_list() { co_return co_await sum({Counted(1), Counted(2), Counted(3)}); }

Task<int> vector_of_temporaries() { co_return co_await sum(std::vector<Counted>(3, Counted(2))); }

Task<int> nested() { co_return co_await take(co_await make(1)); }

Task<int> nested_deep() {
  co_return co_await take_two(co_await make(co_await take(Counted(1))), Counted(2));
}

Task<int> two_awaited_arguments() {
  co_return co_await take_two(co_await make(1), co_await make(2));
}

Task<int> sum_of_awaited() {
  co_return co_await take(Counted(1)) + co_await take(Counted(2)) + co_await look(Counted(3));
}

Task<int> lambda() {
  co_return co_await call([counted = Counted(1)] { return counted.value(); });
}

Task<int> lambda_without_erasure() {
  co_return co_await call_any([counted = Counted(1)] { return counted.value(); });
}

Task<int> lambda_with_moved() {
  auto pointer = std::make_unique<Counted>(1);
  co_return co_await call([pointer = std::move(pointer)] { return pointer->value(); });
}

Task<int> lambda_coroutine() {
  co_return co_await [](Counted counted) -> Task<int> {
    co_await Pause{};
    co_return counted.value();
  }(Counted(1));
}

Task<int> unique_pointer() { co_return co_await take_pointer(std::make_unique<Counted>(1)); }

Task<int> member_of_temporary() { co_return co_await Maker(Counted(1)).value(); }

Task<int> member_of_awaited() { co_return (co_await make(1)).value(); }

Task<int> text() { co_return co_await length(std::string(100, 'x') + "y"); }

Task<int> awaited_object() { co_return co_await Waiter{Counted(1)}; }

Task<int> awaited_object_of_call() { co_return co_await waiter(co_await make(1)); }

Task<int> conditional() {
  const bool is_first = co_await take(Counted(1)) == 1;
  co_return is_first ? co_await take(Counted(2)) : co_await look(Counted(3));
}

Task<int> logical() {
  const bool both = co_await take(Counted(1)) == 1 && co_await take(Counted(2)) == 2;
  const bool either = co_await take(Counted(1)) == 2 || co_await look(Counted(2)) == 2;
  co_return both&& either ? 1 : 0;
}

Task<int> if_with_optional() {
  if (const auto found = co_await maybe(Counted(1))) co_return found->value();
  co_return 0;
}

Task<int> if_with_expected() {
  if (auto made = co_await expect(Counted(-1)); !made) {
    co_return static_cast<int>(made.error().size());
  }
  co_return 0;
}

Task<int> expected_value() {
  auto made = co_await expect(Counted(1));
  co_return co_await take(*std::move(made));
}

Task<int> while_with_awaited() {
  int count = 0;
  while (co_await take(Counted(count)) < 3) ++count;
  co_return count;
}

Task<int> for_over_awaited() {
  int total = 0;
  for (const Counted& counted : co_await list(3)) total += co_await take(counted);
  co_return total;
}

Task<int> switch_on_awaited() {
  switch (co_await take(Counted(2))) {
    case 2:
      co_return co_await take(Counted(5));
    default:
      co_return 0;
  }
}

Task<int> structured_binding() {
  auto [first, second] = co_await pair(Counted(1), Counted(2));
  co_return co_await take_two(std::move(first), std::move(second));
}

Task<int> array_of_awaited() {
  const std::array<Counted, 2> all{co_await make(1), co_await make(2)};
  co_return all[0].value() + all[1].value();
}

Task<int> variant() {
  std::variant<std::string, Counted> held(co_await make(1));
  co_return co_await take(std::get<Counted>(std::move(held)));
}

Task<int> assigned() {
  Counted counted(0);
  counted = co_await make(1);
  counted = Counted(co_await take(counted) + 1);
  co_return counted.value();
}

Task<int> thrown_by_awaited() {
  try {
    co_return co_await take_two(Counted(1), Counted(co_await fail(Counted(7))));
  } catch (const std::runtime_error& error) {
    co_return std::stoi(error.what());
  }
}

Task<int> thrown_by_argument() {
  try {
    co_return co_await take_two(co_await make(1), throw_instead());
  } catch (const std::runtime_error&) {
  }
  co_return co_await take(Counted(3));
}

Task<int> thrown_through() {
  Counted counted(1);
  co_return co_await fail(std::move(counted));
}

Task<int> caught_from_below() {
  int value = 0;
  try {
    value = co_await thrown_through();
  } catch (const std::runtime_error& error) {
    value = std::stoi(error.what());
  }
  co_return co_await take(Counted(value));
}

struct Shape {
  const char* name;
  Task<int> (*start)();
  int value;
};

constexpr Shape kShapes[] = {
    {"temporary", temporary, 1},
    {"moved", moved, 1},
    {"copied", copied, 2},
    {"bound to a reference", bound_to_reference, 1},
    {"two temporaries", two_temporaries, 3},
    {"default argument", default_argument, 31},
    {"braced", braced, 21},
    {"braced, whole", braced_whole, 3},
    {"braced, named", braced_and_named, 21},
    {"braced from moved", braced_from_moved, 21},
    {"braced in braces", braced_in_braces, 28},
    {"braced from awaited", braced_from_awaited, 3},
    {"initializer list", initializer_list, 6},
    {"vector of temporaries", vector_of_temporaries, 6},
    {"nested", nested, 1},
    {"nested deep", nested_deep, 3},
    {"two awaited arguments", two_awaited_arguments, 3},
    {"sum of awaited", sum_of_awaited, 6},
    {"lambda", lambda, 1},
    {"lambda without erasure", lambda_without_erasure, 1},
    {"lambda with a moved pointer", lambda_with_moved, 1},
    {"lambda coroutine", lambda_coroutine, 1},
    {"unique pointer", unique_pointer, 1},
    {"member of a temporary", member_of_temporary, 1},
    {"member of what was awaited", member_of_awaited, 1},
    {"text", text, 101},
    {"awaited object", awaited_object, 1},
    {"awaited object of a call", awaited_object_of_call, 1},
    {"conditional", conditional, 2},
    {"logical", logical, 1},
    {"if with an optional", if_with_optional, 1},
    {"if with an expected", if_with_expected, 43},
    {"value of an expected", expected_value, 1},
    {"while", while_with_awaited, 3},
    {"for", for_over_awaited, 6},
    {"switch", switch_on_awaited, 5},
    {"structured binding", structured_binding, 3},
    {"array of awaited", array_of_awaited, 3},
    {"variant", variant, 1},
    {"assigned", assigned, 2},
    {"thrown by what is awaited", thrown_by_awaited, 7},
    {"thrown by an argument", thrown_by_argument, 3},
    {"thrown through a coroutine", caught_from_below, 1},
};

// Resumes the shape at most `steps` times, then destroys it; whether it came to its end.
bool run(const Shape& shape, int steps) {
  current_shape = shape.name;
  bool is_done = false;
  {
    Task<int> task = shape.start();
    task.start();
    for (int step = 0; step < steps && !task.is_done(); ++step) suspended.resume();
    is_done = task.is_done();
    if (is_done && task.result() != shape.value)
      refuse_compiler(shape.name, "a value is not what it was");
  }
  if (!Counted::alive().empty()) refuse_compiler(shape.name, "an object is never destroyed");
  return is_done;
}

}  // namespace
}  // namespace trial

int main() {
  int runs = 0;
  for (const trial::Shape& shape : trial::kShapes) {
    int steps = 0;
    while (!trial::run(shape, steps)) ++steps;
    runs += steps + 1;
  }
  std::printf("%zu shapes in %d runs: each object was destroyed once\n", std::size(trial::kShapes),
              runs);
}
