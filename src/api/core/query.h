// The query of a request, field by field, with every mistake collected like those of a
// JSON body. Parameters that no route asks for are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace clawdforge {

class Query {
 public:
  // `text` is what follows the '?', still percent-encoded.
  explicit Query(std::string_view text);

  // Each gives the parameter, or none where it is absent or wrong; wrong is noted. One
  // that stands there twice is wrong: two programs would read it differently.
  std::optional<std::string> text(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  std::optional<bool> flag(std::string_view name);  // true, false, 1 or 0

  void wrong(std::string_view name, std::string message);

  // Errc::invalid "validation_failed" with all that was wrong.
  Result<void> check() const;

 private:
  struct Parameter {
    std::string name;
    std::optional<std::string> value;  // none: its escapes are broken
  };

  std::vector<Parameter> parameters_;
  std::vector<FieldError> wrong_;
};

}  // namespace clawdforge
