#include "cli/core/uploading.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/descriptor.h"
#include "base/ids.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kUploadMax = std::chrono::hours(1);

// Only the extension matters to the gateway; what would break the form's header goes.
std::string form_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  std::erase_if(name,
                [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\' || c == 0x7F; });
  return name;
}

}  // namespace

Asked<GatewayAnswer> upload_file(const Destination& to, const std::string& path,
                                 std::optional<std::int64_t> ttl_secs) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found{};
  if (!file.is_open() || ::fstat(file.number(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return complain(kExitUsage, fmt::format("{} is not a file that can be read.", path));
  }
  const std::string boundary(RandomIds(SystemClock()).token("clawdforge-").reveal());
  ClientRequest request;
  request.method = "POST";
  request.target = "/files";
  if (ttl_secs) request.target += fmt::format("?ttl_secs={}", *ttl_secs);
  request.content_type = "multipart/form-data; boundary=" + boundary;
  request.body =
      fmt::format("--{}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\n\r\n",
                  boundary, form_name(path));
  request.file = ClientFile{file.number(), static_cast<std::uint64_t>(found.st_size),
                            fmt::format("\r\n--{}--\r\n", boundary)};
  return ask(to, std::move(request), kUploadMax);
}

Asked<boost::json::array> bring_files(const Destination& to,
                                      const std::vector<std::string>& files) {
  boost::json::array tokens;
  for (const std::string& file : files) {
    std::error_code error;
    if (file.starts_with("ff_") && !std::filesystem::exists(file, error)) {
      tokens.emplace_back(boost::json::string(file));
      continue;
    }
    const auto brought = upload_file(to, file);
    if (!brought) return std::unexpected(brought.error());
    tokens.emplace_back(boost::json::string(field_of(brought->body, "file_token")));
  }
  return tokens;
}

}  // namespace clawdforge
