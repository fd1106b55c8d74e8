#include "agent/demo/demo_talk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>

#include "base/ids.h"
#include "base/json_text.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

constexpr std::string_view kIdPrefix = "demo-";
constexpr std::size_t kIdBytes = 16;

struct File {
  int descriptor;
  explicit File(const std::string& path, int flags)
      : descriptor(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
};

std::string new_id() {
  std::array<unsigned char, kIdBytes> bytes{};
  fill_random(bytes.data(), bytes.size());
  return fmt::format("{}{:02x}", kIdPrefix, fmt::join(bytes, ""));
}

// Only our own ids: another one could lead out of the directory.
bool is_id(std::string_view id) {
  if (!id.starts_with(kIdPrefix)) return false;
  id.remove_prefix(kIdPrefix.size());
  return id.size() == 2 * kIdBytes &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string file_of(const std::string& temp_dir, std::string_view id) {
  return fmt::format("{}/clawdforge-{}.jsonl", temp_dir, id);
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::optional<std::string> read_file(const std::string& path) {
  const File file(path, O_RDONLY);
  if (file.descriptor < 0) return std::nullopt;
  std::string content;
  std::array<char, 64 * 1024> piece;
  while (true) {
    const ssize_t count = read(file.descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return content;
    content.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// A line that is not JSON was being written when the process was ended.
std::vector<DemoExchange> read_exchanges(std::string_view content) {
  std::vector<DemoExchange> exchanges;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    boost::system::error_code fault;
    const json::value line = json::parse(json::string_view(content.data(), end), fault);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (fault || !line.is_array() || line.get_array().size() != 2) continue;
    const auto* prompt = line.get_array()[0].if_string();
    const auto* answer = line.get_array()[1].if_string();
    if (prompt && answer) exchanges.push_back({std::string(*prompt), std::string(*answer)});
  }
  return exchanges;
}

// No character is cut in two.
void cut(std::string& text) {
  if (text.size() <= kDemoKeptTextBytesMax) return;
  std::size_t end = kDemoKeptTextBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
}

}  // namespace

std::optional<DemoTalk> begin_talk(const std::string& temp_dir) {
  DemoTalk talk;
  talk.id = new_id();
  talk.file = file_of(temp_dir, talk.id);
  const File file(talk.file, O_WRONLY | O_CREAT | O_EXCL);
  if (file.descriptor < 0) return std::nullopt;
  return talk;
}

std::optional<DemoTalk> find_talk(const std::string& temp_dir, std::string_view id) {
  if (!is_id(id)) return std::nullopt;
  DemoTalk talk;
  talk.id = id;
  talk.file = file_of(temp_dir, id);
  const auto content = read_file(talk.file);
  if (!content) return std::nullopt;
  talk.exchanges = read_exchanges(*content);
  return talk;
}

bool keep_exchange(DemoTalk& talk, DemoExchange exchange) {
  cut(exchange.prompt);
  cut(exchange.answer);
  // The line's end stands in front: so a line that was cut off spoils none but itself.
  std::string line = "\n[";
  append_json_string(line, exchange.prompt);
  line += ',';
  append_json_string(line, exchange.answer);
  line += ']';
  const File file(talk.file, O_WRONLY | O_APPEND);
  struct stat status{};
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0) return false;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size + line.size() > kDemoTalkBytesMax) return true;
  talk.exchanges.push_back(std::move(exchange));
  return write_all(file.descriptor, line);
}

}  // namespace clawdforge
