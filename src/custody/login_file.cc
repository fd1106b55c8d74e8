#include "custody/login_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <new>
#include <vector>

#include "base/descriptor.h"

namespace clawdforge {
namespace {

// Memory that is wiped when it goes: there may be a token in it.
class WipedBytes {
 public:
  explicit WipedBytes(std::size_t size) : bytes_(size) {}
  WipedBytes(const WipedBytes&) = delete;
  WipedBytes& operator=(const WipedBytes&) = delete;
  ~WipedBytes() { ::explicit_bzero(bytes_.data(), bytes_.size()); }

  unsigned char* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<unsigned char> bytes_;
};

bool has_text(const boost::json::object& object, std::string_view name) {
  const auto* const found = object.if_contains(name);
  return found != nullptr && found->is_string() && !found->as_string().empty();
}

std::optional<TimePoint> time_at(const boost::json::object& object, std::string_view name) {
  const auto* const found = object.if_contains(name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  boost::system::error_code error;
  const auto milliseconds = found->to_number<std::int64_t>(error);
  if (error || milliseconds < 0) return std::nullopt;
  return TimePoint(std::chrono::milliseconds(milliseconds));
}

// All that is made of the text lies in these two: there is no other memory for it.
LoginFile parsed(std::string_view json, WipedBytes& values, WipedBytes& unfinished) {
  boost::json::monotonic_resource memory(values.data(), values.size(),
                                         boost::json::get_null_resource());
  boost::json::parser parser(boost::json::get_null_resource(), {}, unfinished.data(),
                             unfinished.size());
  parser.reset(&memory);
  boost::system::error_code error;
  parser.write(json, error);
  if (error) return {};
  const boost::json::value whole = parser.release();
  const auto* const root = whole.if_object();
  const auto* const login = root == nullptr ? nullptr : root->if_contains("claudeAiOauth");
  if (login == nullptr || !login->is_object()) return {};
  const boost::json::object& fields = login->as_object();
  return {.has_access = has_text(fields, "accessToken"),
          .has_refresh = has_text(fields, "refreshToken"),
          .expires_at = time_at(fields, "expiresAt"),
          .sign_in_ends_at = time_at(fields, "refreshTokenExpiresAt")};
}

}  // namespace

LoginFile login_in(std::string_view json) {
  // A value of two characters becomes one of sixteen bytes, and more in an object.
  WipedBytes values(32 * json.size() + 4096);
  WipedBytes unfinished(32 * json.size() + 4096);
  try {
    return parsed(json, values, unfinished);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

LoginFile look_at_login(const std::string& path) {
  // Not blocked by what is not a file.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) return {};
  WipedBytes bytes(kLoginFileBytesMax);
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return login_in(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), size));  // NOLINT(*-cast)
}

}  // namespace clawdforge
