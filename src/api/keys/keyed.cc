#include "api/keys/keyed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/core/problem.h"

namespace clawdforge {
namespace {

constexpr std::string_view kKeyHeader = "Idempotency-Key";
// Headers that are kept with an answer.
constexpr std::string_view kKeptHeaders[] = {"Location",
                                             "Preference-Applied",
                                             "Retry-After",
                                             "WWW-Authenticate",
                                             "X-Clawdforge-Cost-Usd",
                                             "X-Clawdforge-Input-Tokens",
                                             "X-Clawdforge-Output-Tokens",
                                             "X-Clawdforge-Run-Id"};

Digest digest_of(const Caller& caller, const Request& request, std::string_view key) {
  std::string text = caller.app->name.str();
  for (const std::string_view part : {request.method, request.path, key}) {
    text += '\n';  // is in none of them
    text += part;
  }
  return sha256(text);
}

Failure failure_of(KeptKind kind) {
  if (kind == KeptKind::interrupted) {
    return fail(Errc::unavailable, "interrupted",
                "The gateway ended while this was under way. It is not known what was done until "
                "then, so it is not done again; look, and use a new key to have it done.")
        .error();
  }
  return fail(Errc::gone, "answer_not_kept",
              "This was done, and its answer was too large to be kept for its key.")
      .error();
}

Response response_of(const KeptAnswer& kept, bool is_replay) {
  Response response;
  if (kept.kind == KeptKind::whole) {
    response.status = kept.status;
    response.body = kept.body;
    for (std::string_view rest = kept.headers; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const std::size_t colon = line.find(": ");
      const auto* const name = std::ranges::find(kKeptHeaders, line.substr(0, colon));
      if (colon == line.npos || name == std::end(kKeptHeaders)) continue;
      response.headers.emplace_back(*name, line.substr(colon + 2));
    }
  } else {
    response = problem(failure_of(kept.kind), kept.request_id);
  }
  if (is_replay) response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

// A large body is read by the compute worker, which gives it back.
Async<Digest> fingerprint_of(ComputeWorker* compute, AppName app, Request* request) {
  std::string head(request->query);
  head += '\n';
  if (request->body.size() < kComputeBytesMin) co_return sha256(head + request->body);
  const auto body = std::make_shared<std::string>(std::move(request->body));
  auto digest = co_await compute->call(Lane(std::move(app)),
                                       [body, head = std::move(head)]() -> Result<Digest> {
                                         return sha256(head + to_hex(sha256(*body)));
                                       });
  request->body = std::move(*body);
  co_return digest;
}

Task<Response> answer_with_key(Keys* keys, ComputeWorker* compute,
                               std::shared_ptr<const Answer> answer, Caller caller,
                               Request* request) {
  const auto key = key_of(*request);
  if (!key) co_return problem(key.error(), request->id);
  const auto fingerprint = co_await fingerprint_of(compute, caller.app->name, request);
  if (!fingerprint) co_return problem(fingerprint.error(), request->id);
  co_return co_await answer_once(keys, *fingerprint, std::move(caller), request, *answer);
}

}  // namespace

bool has_key(const Request& request) { return request.header(kKeyHeader).has_value(); }

Result<std::string_view> key_of(const Request& request) {
  const std::string_view key = request.header(kKeyHeader).value_or("");
  const auto count = std::ranges::count_if(request.headers, [](const Header& header) {
    return equals_ignoring_case(header.name, kKeyHeader);
  });
  const bool is_good = !key.empty() && key.size() <= kIdempotencyKeyBytesMax && count == 1 &&
                       std::ranges::all_of(key, [](char c) { return c >= ' ' && c <= '~'; });
  if (is_good) return key;
  return fail(Errc::malformed, "bad_idempotency_key",
              "Send one Idempotency-Key of 1 to 255 printable ASCII characters.");
}

KeptAnswer kept_answer(const Response& response, std::string_view request_id) {
  KeptAnswer kept{.status = response.status, .request_id = std::string(request_id)};
  for (const auto& [name, value] : response.headers) {
    if (std::ranges::find(kKeptHeaders, name) == std::end(kKeptHeaders)) continue;
    kept.headers.append(name).append(": ").append(value).append("\n");
  }
  if (response.body.size() > kKeptAnswerBytesMax) {
    kept.kind = KeptKind::too_large;
  } else {
    kept.body = response.body;
  }
  return kept;
}

Task<Response> answer_once(Keys* keys, Digest fingerprint, Caller caller, Request* request,
                           Answer work) {
  AskKey key{.digest = digest_of(caller, *request, key_of(*request).value_or("")),
             .fingerprint = fingerprint,
             .app = caller.app->name,
             .request_id = request->id,
             .begun_at = {},
             .instance_id = {}};
  auto claim = co_await keys->claim(std::move(key), request->hang_up);
  if (!claim) co_return problem(claim.error(), request->id);
  if (claim->answer()) co_return response_of(*claim->answer(), claim->is_replay());
  caller.key = claim->hold();
  HangUp* const own = request->hang_up;
  if (own != nullptr) request->hang_up = claim->hang_up();
  Response response = co_await work(std::move(caller), request);
  request->hang_up = own;
  const bool is_success = response.status < 300 && !response.stream;
  const auto finished =
      co_await keys->finish(&*claim, kept_answer(response, request->id), is_success);
  if (!finished) co_return problem(finished.error(), request->id);
  co_return response;
}

Answer keyed(Keys& keys, ComputeWorker& compute, Answer answer) {
  const auto kept = std::make_shared<const Answer>(std::move(answer));
  return [all = &keys, worker = &compute, kept](Caller caller, Request* request) {
    if (!has_key(*request)) return (*kept)(std::move(caller), request);
    return answer_with_key(all, worker, kept, std::move(caller), request);
  };
}

}  // namespace clawdforge
