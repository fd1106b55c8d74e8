// A stand-in for an agent that costs as little as a program can: it speaks the Agent Client
// Protocol on its standard input and output, answers each prompt with one piece of text and
// the end of the turn, and with N pieces if the prompt says "chunks N". What a caller waits
// for beyond it is the gateway's own. It reads no more of a message than it needs, so it is
// for clients that write one message a line without spaces, the id and the method in front of
// the parameters, as those of the benchmarks do.
//   instant_acp [--by-line]     (each line is written by itself; else as few writes as can be)
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t kWriteBytes = 64 * 1024;
constexpr long kChunksMax = 10'000'000;

bool by_line = false;
std::string unsent;

void flush() {
  std::string_view rest = unsent;
  while (!rest.empty()) {
    const ssize_t count = write(STDOUT_FILENO, rest.data(), rest.size());
    if (count <= 0) std::exit(1);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  unsent.clear();
}

void say(std::string_view a, std::string_view b, std::string_view c, std::string_view d = {},
         std::string_view e = {}) {
  unsent.append(a).append(b).append(c).append(d).append(e).push_back('\n');
  if (by_line || unsent.size() >= kWriteBytes) flush();
}

// What follows the first `key`, until one of `ends`.
std::string_view after(std::string_view text, std::string_view key, std::string_view ends) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(ends));
}

void result(std::string_view id, std::string_view text) {
  say(R"({"jsonrpc":"2.0","id":)", id, R"(,"result":)", text, "}");
}

void answer_prompt(std::string_view line, std::string_view id) {
  const std::string_view session = after(line, R"("sessionId":")", "\"");
  const std::string_view digits = after(line, "chunks ", "\"\\ ");
  long chunks = 1;
  std::from_chars(digits.data(), digits.data() + digits.size(), chunks);
  if (chunks > kChunksMax) chunks = kChunksMax;
  for (long i = 0; i < chunks; ++i) {
    char number[24];
    const auto end = std::to_chars(number, number + sizeof number, i).ptr;
    say(R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":")", session,
        R"(","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word )",
        std::string_view(number, static_cast<std::size_t>(end - number)), R"( "}}}})");
  }
  result(id, R"({"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":1,)"
             R"("cachedReadTokens":0,"cachedWriteTokens":0,"totalTokens":4}})");
}

// Unique also where every agent has the same process id, each in a namespace of its own.
void open_session(std::string_view id) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string name =
      "instant-" + std::to_string(now.tv_sec) + "-" + std::to_string(now.tv_nsec);
  result(id, R"({"sessionId":")" + name + R"("})");
}

void take(std::string_view line) {
  const std::string_view head = line.substr(0, line.find(R"("params")"));
  const std::string_view id = after(head, R"("id":)", ",}");
  if (id.empty()) return;
  const std::string_view method = after(head, R"("method":")", "\"");
  if (method == "session/prompt") {
    answer_prompt(line, id);
  } else if (method == "initialize") {
    result(id, R"({"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":[],)"
               R"("agentInfo":{"name":"instant","version":"0.0.1"}})");
  } else if (method == "session/new") {
    open_session(id);
  } else if (method == "session/load") {
    result(id, "{}");
  } else if (!method.empty()) {
    say(R"({"jsonrpc":"2.0","id":)", id,
        R"(,"error":{"code":-32601,"message":"Method not found"}})");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    say("0.0.1 (instant)", "", "");
    flush();
    return 0;
  }
  by_line = argc > 1 && std::strcmp(argv[1], "--by-line") == 0;
  std::string input;
  static char piece[kWriteBytes];
  for (ssize_t count = 0; (count = read(STDIN_FILENO, piece, sizeof piece)) > 0;) {
    input.append(piece, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (auto end = input.find('\n'); end != std::string::npos; end = input.find('\n', begin)) {
      take(std::string_view(input).substr(begin, end - begin));
      begin = end + 1;
    }
    input.erase(0, begin);
    flush();
  }
  return 0;
}
