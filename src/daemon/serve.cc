#include "daemon/serve.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "config/effective/effective_config.h"
#include "daemon/gateway.h"
#include "daemon/jail_setup.h"
#include "daemon/process/handed_socket.h"
#include "daemon/process/process_setup.h"
#include "daemon/process/service_notice.h"
#include "ledger/open_ledger.h"
#include "process/launch/launch.h"

namespace clawdforge {
namespace {

constexpr int kExitFailedStart = 1;
constexpr int kExitBadConfig = 2;

// The digest of the admin token: configured, or kept in the data directory, or made now.
Result<Digest> admin_digest(const Config& config, const DataDir& data_dir, IdSource& ids,
                            Log& log) {
  constexpr std::size_t kTokenBytesMin = 20;
  if (!config.admin_token.empty()) return sha256(config.admin_token.reveal());
  auto token = data_dir.read_admin_token();
  if (!token && token.error().kind == Errc::not_found) {
    Secret made = ids.token("cfadmin_");
    if (auto written = data_dir.write_admin_token(made); !written) {
      return std::unexpected(written.error());
    }
    token = std::move(made);
  }
  if (!token) return std::unexpected(token.error());
  if (token->reveal().size() < kTokenBytesMin) {
    return fail(Errc::unavailable, "admin_token",
                fmt::format("The admin token in {} is shorter than {} characters; remove the file "
                            "and a new one is made.",
                            data_dir.admin_token_path(), kTokenBytesMin));
  }
  const std::string place = data_dir.admin_token_path();
  if (data_dir.close_admin_token()) {
    log.warn(
        "other users could read the file of the admin token; they cannot any more, but may know "
        "the "
        "token: remove the file and restart, and a new one is made",
        {{"path", std::string_view(place)}});
  }
  log.info("the admin token is in a file", {{"path", std::string_view(place)}});
  return sha256(token->reveal());
}

// A group may have it: that is how systems give a key to the service that needs it.
void warn_of_open_key(const Config& config, Log& log) {
  struct stat found{};
  if (config.tls_key.empty() || ::stat(config.tls_key.c_str(), &found) != 0) return;
  if ((found.st_mode & S_IROTH) == 0) return;
  log.warn("every user of this machine can read the TLS key; chmod o= it, and replace the key",
           {{"path", std::string_view(config.tls_key)}});
}

Result<std::unique_ptr<Spawner>> make_spawner(IoContext& io, const Config& config, Log& log,
                                              std::optional<std::uint64_t> descriptors_soft) {
  leave_launcher_capabilities();
  Spawner::Options options;
  options.pid_namespace = config.pid_namespace;
  options.kill_grace = config.kill_grace;
  options.descriptors_soft = descriptors_soft;
  options.adopts_orphans = true;
  options.uses_cgroups = true;
  options.hidden = hidden_dir(config, environment_variables(), log);
  options.jail_max = jail_max(config);
  auto spawner = Spawner::make(io.get_executor(), options, log);
  if (!spawner) return spawner;
  if (auto checked = check_jail(config, **spawner, log); !checked) {
    return std::unexpected(checked.error());
  }
  return spawner;
}

Result<void> run_gateway(const Config& config, Log& log, const ServiceNotice& notice,
                         std::optional<std::uint64_t> descriptors_soft, HandedSocket* handed) {
  const SystemClock clock;
  RandomIds ids(clock);
  Metrics metrics;
  auto data_dir = DataDir::open(config.data_dir);
  if (!data_dir) return std::unexpected(data_dir.error());
  if (!data_dir->is_private()) {
    log.warn("other users of this machine can look into the data directory; chmod 700 it",
             {{"path", std::string_view(data_dir->path())}});
  }
  warn_of_open_key(config, log);
  auto digest = admin_digest(config, *data_dir, ids, log);
  if (!digest) return std::unexpected(digest.error());

  IoContext io(1);
  auto ledger = open_ledger(io.get_executor(), config.ledger, InstanceId(ids.uuid()), log, metrics);
  if (!ledger) return std::unexpected(ledger.error());
  auto program = own_program();
  if (!program) return std::unexpected(program.error());
  auto spawner = make_spawner(io, config, log, descriptors_soft);
  if (!spawner) return std::unexpected(spawner.error());
  Disk disk(io.get_executor());
  Gateway gateway({io, config, *data_dir, **ledger, clock, ids, log, metrics, **spawner, disk,
                   notice, *program, environment_variables(), handed},
                  *digest);

  std::optional<Result<void>> outcome;
  boost::asio::co_spawn(io.get_executor(), gateway.run(),
                        [&](std::exception_ptr thrown, Result<void> result) {
                          if (thrown) std::rethrow_exception(thrown);
                          outcome = std::move(result);
                        });
  try {
    io.run();
  } catch (const std::exception& exception) {
    // A defect. Nothing can be taken apart in order any more, and nothing needs to be:
    // what was acknowledged is committed.
    std::fprintf(stderr, "clawdforge: a defect ends the gateway: %s\n", exception.what());
    std::_Exit(kExitFailedStart);
  }
  if (!outcome) return fail(Errc::internal, "internal", "The gateway ended before it had started.");
  return *outcome;
}

bool is_at(const HandedSocket& socket, const ListenAddress& address) {
  return socket.host == address.host && (address.port == 0 || socket.port == address.port);
}

// What it logged is written when it returns.
Result<void> serve_with(const Config& config, const ServiceNotice& notice,
                        std::optional<std::uint64_t> descriptors_soft, HandedSocket* handed) {
  Log log(config.log_level, config.log_format);
  for (const std::string& warning : config.warnings) log.warn(warning);
  if (::geteuid() == 0 && !config.allow_root) {
    log.warn(
        "the gateway runs as root, and so do its agents: they can change every file of this "
        "machine. Use a user of its own; --allow-root silences this warning");
  }
  if (handed != nullptr) {
    log.info("the service manager hands over the socket",
             {{"address", std::string_view(handed->host)}, {"port", std::int64_t{handed->port}}});
  }
  auto ran = run_gateway(config, log, notice, descriptors_soft, handed);
  if (!ran && !ran.error().detail.empty()) {
    log.warn("the start failed", {{"why", std::string_view(ran.error().detail)}});
  }
  return ran;
}

}  // namespace

int serve(std::vector<std::string> flags) {
  if (wants_help(flags)) return print_serve_help();
  auto config = effective_config(std::move(flags));
  if (!config) return refuse(kExitBadConfig, config.error());
  const ServiceNotice notice(ServiceNotice::take_address());
  auto handed = take_handed_socket();
  if (!handed) return refuse(kExitBadConfig, handed.error());
  std::optional<HandedSocket> socket = std::move(*handed);
  if (socket && socket->is_stored && !is_at(*socket, config->listen)) {
    notice.forget_socket();  // the owner wants another address now
    socket.reset();
  }
  if (socket) config->listen = {.host = socket->host, .port = socket->port};
  const auto descriptors_soft = prepare_process();
  try {
    const auto ran = serve_with(*config, notice, descriptors_soft, socket ? &*socket : nullptr);
    if (ran) return 0;
    // The last line that a person sees: all that was logged is above it.
    const bool is_config = ran.error().kind == Errc::invalid;
    return refuse(is_config ? kExitBadConfig : kExitFailedStart, ran.error());
  } catch (const std::exception& exception) {
    // The system refused a thread, a descriptor or memory before there was a gateway.
    Failure error;
    error.message = fmt::format("The gateway cannot start: {}.", exception.what());
    return refuse(kExitFailedStart, error);
  }
}

int print_config(std::vector<std::string> flags) {
  if (wants_help(flags)) return print_serve_help();
  const bool as_json = take_flag(flags, "--json");
  const auto config = effective_config(std::move(flags));
  if (!config) return refuse(kExitBadConfig, config.error());
  for (const std::string& warning : config->warnings) {
    std::fprintf(stderr, "clawdforge: %s\n", warning.c_str());
  }
  std::fputs((as_json ? render_config_as_json(*config) : render_config(*config)).c_str(), stdout);
  return 0;
}

Result<LocalGateway> find_local_gateway(const std::string& data_dir) {
  std::vector<std::string> flags;
  if (!data_dir.empty()) flags = {"--data-dir", data_dir};
  auto config = effective_config(std::move(flags));
  if (!config) return std::unexpected(config.error());
  LocalGateway local;
  local.data_dir = config->data_dir;
  auto token = read_admin_token_in(config->data_dir);
  if (!token && token.error().kind != Errc::not_found) return std::unexpected(token.error());
  if (token) local.admin_token = std::move(*token);
  // The file may be left over from a gateway that was killed; another program may have its port.
  if (!is_data_dir_in_use(config->data_dir)) return local;
  auto written = read_address_in(config->data_dir);
  if (!written && written.error().kind != Errc::not_found) return std::unexpected(written.error());
  if (!written) return local;
  local.is_running = true;
  local.url = std::move(written->url);
  local.certificate = std::move(written->certificate);
  local.socket_file = find_admin_socket_in(config->data_dir);
  return local;
}

}  // namespace clawdforge
