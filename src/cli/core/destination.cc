#include "cli/core/destination.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/descriptor.h"
#include "base/net.h"
#include "cli/core/env_file.h"

namespace clawdforge {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// What the caller said, before the gateway of this machine is looked for.
struct Place {
  std::string url{};
  std::string source{};
  EnvFile file{};
  bool is_profile = false;  // its file was named, so its token goes before the environment's
  bool is_stored = false;   // `url` is from `file`
};

Asked<Place> profile_place(const std::string& name) {
  if (!is_profile_name(name)) {
    return complain(kExitUsage, fmt::format("'{}' is not a profile's name; it has letters, digits, "
                                            "_ and -.",
                                            name));
  }
  auto read = read_env_file(env_file_path(name));
  if (!read) return std::unexpected(read.error());
  std::optional<EnvFile> file = std::move(*read);
  if (!file || file->url.empty()) {
    return complain(kExitUsage, fmt::format("there is no profile {}; clawdforge login URL "
                                            "--profile {} makes it.",
                                            name, name));
  }
  Place place{.source = "the profile " + name, .is_profile = true, .is_stored = true};
  place.url = file->url;
  place.file = std::move(*file);
  return place;
}

Asked<Place> choose_place(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  Place place;
  if (arguments.has("--url")) {
    place.url = arguments.text("--url");
    place.source = "--url";
  } else if (!arguments.has("--data-dir")) {
    place.url = environment("CLAWDFORGE_URL");
    if (!place.url.empty()) place.source = "CLAWDFORGE_URL";
    const std::string profile = arguments.has("--profile") ? arguments.text("--profile")
                                                           : environment("CLAWDFORGE_PROFILE");
    if (place.url.empty() && !profile.empty()) return profile_place(profile);
  }
  auto read = read_env_file(env_file_path({}));
  if (!read) return std::unexpected(read.error());
  if (std::optional<EnvFile> file = std::move(*read)) place.file = std::move(*file);
  if (place.source.empty() && !arguments.has("--data-dir") && !place.file.url.empty()) {
    place.url = place.file.url;
    place.source = env_file_path({});
    place.is_stored = true;
  }
  return place;
}

bool is_loopback(const ServerAddress& address) {
  const auto host = IpAddress::parse(address.host == "localhost" ? "127.0.0.1" : address.host);
  return host && host->is_loopback();
}

// Whether what the file holds is meant for this address. A file without one is for this machine.
bool is_for(const EnvFile& file, const Destination& to) {
  if (file.url.empty()) return to.is_local || is_loopback(to.address);
  const auto own = parse_server_url(file.url);
  return own && own->is_tls == to.address.is_tls && own->host == to.address.host &&
         own->port == to.address.port;
}

bool takes_connections(const std::string& socket_file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_file.empty() || socket_file.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, socket_file.data(), socket_file.size());
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.is_open() &&
         ::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

Secret copy_of(const Secret& secret) { return Secret(std::string(secret.reveal())); }

Secret app_token(const Place& place, const Destination& to) {
  Secret given(environment("CLAWDFORGE_TOKEN"));
  const bool is_ours = is_for(place.file, to);
  if (is_ours && !place.file.token.empty() && (place.is_profile || given.empty())) {
    return copy_of(place.file.token);
  }
  return given;
}

// Leaves the token empty where the local socket needs none.
Asked<void> add_admin_token(const Invocation& invocation, const Place& place,
                            const Result<LocalGateway>& local, Destination& to) {
  if (to.is_local && takes_connections(local->socket_file)) {
    // Its file's mode says who may use it, so no token is needed, and no limit on addresses holds.
    to.address.socket_file = local->socket_file;
    return {};
  }
  const bool is_ours = is_for(place.file, to) && !place.file.admin_token.empty();
  if (is_ours && (place.is_profile || invocation.admin_token.empty())) {
    to.token = copy_of(place.file.admin_token);
  } else if (!invocation.admin_token.empty()) {
    to.token = copy_of(invocation.admin_token);
  } else if (local && !local->admin_token.empty()) {
    if (!to.is_local && !is_loopback(to.address)) {
      return complain(kExitNoToken,
                      "the admin token of this machine is not sent to another one; set "
                      "CLAWDFORGE_ADMIN_TOKEN to that gateway's, or clawdforge login there.");
    }
    to.token = copy_of(local->admin_token);
  }
  if (!to.token.empty()) return {};
  return complain(kExitNoToken,
                  "no admin token was found; run this on the gateway's machine as its user, or set "
                  "CLAWDFORGE_ADMIN_TOKEN.");
}

Asked<void> add_token(const Invocation& invocation, TokenKind kind, const Place& place,
                      const Result<LocalGateway>& local, Destination& to) {
  if (kind == TokenKind::none) return {};
  if (kind == TokenKind::admin) return add_admin_token(invocation, place, local, to);
  to.token = app_token(place, to);
  if (!to.token.empty()) return {};
  if (kind == TokenKind::any && add_admin_token(invocation, place, local, to)) return {};
  return complain(
      kExitNoToken,
      fmt::format("there is no app token for {}; clawdforge login {} stores one, or set "
                  "CLAWDFORGE_TOKEN (clawdforge token mint NAME makes one).",
                  to.url, to.url));
}

}  // namespace

Asked<Destination> find_destination(const Invocation& invocation, TokenKind kind) {
  auto place = choose_place(invocation);
  if (!place) return std::unexpected(place.error());
  Destination to;
  to.is_local = place->url.empty();
  // Of another gateway only a command of the admin needs to know what this machine has.
  const bool needs_local = to.is_local || kind == TokenKind::admin || kind == TokenKind::any;
  auto local = needs_local ? invocation.find_local(invocation.arguments.text("--data-dir"))
                           : Result<LocalGateway>(LocalGateway());
  if (!local && to.is_local) return complain(kExitUsage, local.error().message);
  if (to.is_local && !local->is_running) {
    return complain(kExitNoAnswer,
                    fmt::format("no gateway runs on the data directory {}; clawdforge serve starts "
                                "one, and --url or --data-dir names another.",
                                local->data_dir));
  }
  to.url = to.is_local ? local->url : place->url;
  to.source = to.is_local ? "the data directory " + local->data_dir : place->source;
  auto address = parse_server_url(to.url);
  if (!address) return complain(kExitUsage, address.error().message);
  to.address = std::move(*address);
  if (to.is_local) to.address.pinned_pem = local->certificate;
  if (place->is_stored) to.address.ca_file = place->file.ca_file;
  auto added = add_token(invocation, kind, *place, local, to);
  if (!added) return std::unexpected(added.error());
  return to;
}

}  // namespace clawdforge
