// Any text as the configuration file gives a configuration, whose printed form can be
// read again, or a refusal of one line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"

using clawdforge::ConfigSources;
using clawdforge::Errc;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

ConfigSources nothing() {
  ConfigSources sources;
  sources.environment["HOME"] = "/home/cf";
  sources.working_dir = "/";
  return sources;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto config = clawdforge::load_config_with_file_text(nothing(), text);
  if (config) {
    const std::string printed = clawdforge::render_config(*config);
    require(clawdforge::load_config_with_file_text(nothing(), printed).has_value());
  } else {
    require(config.error().kind == Errc::invalid);
    require(config.error().message.find('\n') == std::string::npos);
  }
  return 0;
}
