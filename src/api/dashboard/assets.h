// The files of the dashboard and the pages of the documents, as the build has compiled them in
// (cmake/dashboard.cmake, cmake/docs.cmake). They are constants of the program: they cost no memory
// until a page of them is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace clawdforge {

// Words, because a compiler reads them several times faster than bytes.
struct AssetBytes {
  const std::uint64_t* words = nullptr;
  std::size_t size = 0;

  std::string_view view() const { return {reinterpret_cast<const char*>(words), size}; }
};

struct Asset {
  std::string_view name;  // as it stands after /ui/ or /docs/; the first page is "index.html"
  std::string_view type;
  std::string_view etag;  // of the identity form, without quotes
  bool immutable;         // its name has the hash of its content
  AssetBytes identity;
  AssetBytes gzip;  // of size 0 where it would not be smaller
};

// In the order of their names. Each is defined in a generated source.
std::span<const Asset> dashboard_assets();
std::span<const Asset> docs_assets();

}  // namespace clawdforge
