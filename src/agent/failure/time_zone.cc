#include "agent/failure/time_zone.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <string>

#include "agent/failure/posix_zone.h"

namespace clawdforge {
namespace {

constexpr std::string_view kZoneFiles = "/usr/share/zoneinfo/";
constexpr std::size_t kZoneFileBytesMax = 64 * 1024;
constexpr std::size_t kZoneNameMax = 64;

// The name is foreign text that becomes part of a path.
bool is_zone_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '/';
  };
  return !name.empty() && name.size() <= kZoneNameMax && name.front() != '/' &&
         std::ranges::all_of(name, is_allowed);
}

std::string content_of(std::string_view zone) {
  std::ifstream file(std::string(kZoneFiles).append(zone), std::ios::binary);
  std::string content(kZoneFileBytesMax, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(file.gcount()));
  return content;
}

// A big-endian number with a sign; the caller has checked that it is there.
std::int64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = (static_cast<unsigned char>(bytes[at]) & 0x80) != 0 ? ~0ULL : 0;
  for (std::size_t i = 0; i < size; ++i) {
    number = (number << 8U) | static_cast<unsigned char>(bytes[at + i]);
  }
  return static_cast<std::int64_t>(number);
}

// One of the two blocks of a time zone file (RFC 9636): the numbers of its parts, and
// where those begin.
struct Block {
  std::size_t times, types, offsets, end;
  std::size_t time_count, type_count, time_size;
};

std::optional<Block> block_at(std::string_view file, std::size_t at, std::size_t time_size) {
  constexpr std::size_t kHead = 44;
  if (at + kHead > file.size() || file.substr(at, 4) != "TZif") return std::nullopt;
  std::array<std::size_t, 6> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t count = number_at(file, at + 20 + 4 * i, 4);
    if (count < 0 || static_cast<std::size_t>(count) > kZoneFileBytesMax) return std::nullopt;
    counts[i] = static_cast<std::size_t>(count);
  }
  const auto [universal, standard, leaps, times, types, characters] = counts;
  Block block{.times = at + kHead,
              .types = at + kHead + times * time_size,
              .offsets = at + kHead + times * (time_size + 1),
              .end = 0,
              .time_count = times,
              .type_count = types,
              .time_size = time_size};
  block.end =
      block.offsets + types * 6 + characters + leaps * (time_size + 4) + standard + universal;
  if (block.end > file.size()) return std::nullopt;
  return block;
}

}  // namespace

std::optional<std::int64_t> zone_file_offset(std::string_view file, std::int64_t at) {
  const auto old = block_at(file, 0, 4);
  if (!old || file[4] < '2') return std::nullopt;
  const auto block = block_at(file, old->end, 8);
  if (!block) return std::nullopt;
  std::size_t next = 0;  // the first transition after `at`
  while (next < block->time_count && number_at(file, block->times + next * 8, 8) <= at) ++next;
  // After the last one the rule in the file's last line counts. A file in the slim form, as most
  // containers have it, has no transitions of the present years at all.
  if (next == block->time_count) {
    std::string_view rule = file.substr(block->end);
    if (rule.starts_with('\n')) rule.remove_prefix(1);
    rule = rule.substr(0, rule.find('\n'));
    if (!rule.empty()) return posix_zone_offset(rule, at);
  }
  const std::size_t type =
      next == 0 ? 0 : static_cast<unsigned char>(file[block->types + next - 1]);
  if (type >= block->type_count) return std::nullopt;
  return number_at(file, block->offsets + type * 6, 4);
}

std::optional<std::int64_t> utc_offset(std::string_view zone, std::int64_t at) {
  if (zone == "UTC" || zone == "GMT" || zone == "Z") return 0;
  if (zone.empty()) {
    const std::time_t seconds = at;
    std::tm local{};
    if (localtime_r(&seconds, &local) == nullptr) return std::nullopt;
    return local.tm_gmtoff;
  }
  if (!is_zone_name(zone)) return std::nullopt;
  return zone_file_offset(content_of(zone), at);
}

}  // namespace clawdforge
