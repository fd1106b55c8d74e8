// What `clawdforge verify` asks of the rows of asks, as statements.
#include <array>

#include "offline/verify.h"

namespace clawdforge {
namespace {

// Usage rows less the rows of asks that are kept: of each hour and app never below zero.
constexpr std::string_view kUsageDifference =
    "SELECT app_name || '/' || agent || '/' || kind || '/' || hour AS id FROM ("
    "SELECT app_name, agent, model, kind, at / 3600 AS hour, asks, input_tokens, output_tokens, "
    "cache_read_tokens, cache_write_tokens, nano_usd, agent_ms FROM usage_minutes "
    "UNION ALL SELECT app_name, agent, model, kind, at / 3600, asks, input_tokens, output_tokens, "
    "cache_read_tokens, cache_write_tokens, nano_usd, agent_ms FROM usage_hours "
    "UNION ALL SELECT app_name, agent, COALESCE(model, ''), 'run', ended_at / 3600, -1, "
    "-COALESCE(input_tokens, 0), -COALESCE(output_tokens, 0), -COALESCE(cache_read_tokens, 0), "
    "-COALESCE(cache_write_tokens, 0), "
    "-CASE WHEN cost_usd > 0 AND cost_usd <= 1e9 THEN CAST(ROUND(cost_usd * 1e9) AS BIGINT) "
    "ELSE 0 END, -agent_ms FROM runs WHERE agent_ms IS NOT NULL "
    "UNION ALL SELECT sessions.app_name, sessions.agent, COALESCE(sessions.model, ''), 'turn', "
    "turns.ended_at / 3600, -1, -COALESCE(turns.input_tokens, 0), "
    "-COALESCE(turns.output_tokens, 0), -COALESCE(turns.cache_read_tokens, 0), "
    "-COALESCE(turns.cache_write_tokens, 0), "
    "-CASE WHEN turns.cost_usd > 0 AND turns.cost_usd <= 1e9 "
    "THEN CAST(ROUND(turns.cost_usd * 1e9) AS BIGINT) ELSE 0 END, -turns.agent_ms "
    "FROM turns JOIN sessions ON sessions.session_id = turns.session_id "
    "WHERE turns.agent_ms IS NOT NULL) AS both "
    "GROUP BY app_name, agent, model, kind, hour "
    "HAVING SUM(asks) < 0 OR SUM(input_tokens) < 0 OR SUM(output_tokens) < 0 "
    "OR SUM(cache_read_tokens) < 0 OR SUM(cache_write_tokens) < 0 OR SUM(nano_usd) < 0 "
    "OR SUM(agent_ms) < 0";

// What a window of a budget has counted. Usage that is older than its retention is gone from the
// rows, so a window may have counted more than they say, and never less.
constexpr std::string_view kWindowDifference =
    "SELECT scope || '/' || begins_at || '/' || ends_at AS id FROM budget_windows WHERE asks < "
    "(SELECT COALESCE(SUM(asks), 0) FROM (SELECT app_name, at, asks FROM usage_minutes UNION ALL "
    "SELECT app_name, at, asks FROM usage_hours) AS used WHERE at >= begins_at AND at < ends_at "
    "AND (scope = '' OR app_name = scope))";

constexpr std::array kAskRowChecks = {
    RowCheck{{"job-row", "a job has a kind, a state, a time or a count that is none"},
             "SELECT job_id AS id FROM jobs "
             "WHERE state NOT IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', "
             "'interrupted') OR kind NOT IN ('run', 'turn') "
             "OR (kind = 'turn') <> (session_id IS NOT NULL) "
             "OR NOT (created_at BETWEEN 0 AND 253402300799) "
             "OR NOT (ready_at BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(started_at, 0) BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(ended_at, 0) BETWEEN 0 AND 253402300799) "
             "OR NOT (attempts_max BETWEEN 1 AND 5) OR NOT (attempts BETWEEN 0 AND attempts_max)"},
    // A queued job that was cancelled has no status: it was never done.
    RowCheck{{"job-end", "a job's end and its state do not fit each other"},
             "SELECT job_id AS id FROM jobs "
             "WHERE (state IN ('queued', 'running')) <> (ended_at IS NULL) "
             "OR (body IS NULL) <> (ended_at IS NOT NULL) "
             "OR (state = 'running' AND (started_at IS NULL OR attempts = 0)) "
             "OR (state = 'succeeded' AND NOT (COALESCE(status, 0) BETWEEN 200 AND 399)) "
             "OR (state IN ('failed', 'interrupted') "
             "AND NOT (COALESCE(status, 0) BETWEEN 400 AND 599))"},
    RowCheck{{"job-answer", "a job's answer is not there, or is not of the size that its row says"},
             "SELECT job_id AS id FROM jobs WHERE is_in_file NOT IN (0, 1) "
             "OR (is_in_file = 1 AND answer IS NOT NULL) "
             "OR (is_in_file = 0 AND (answer_bytes <> 0) <> (answer IS NOT NULL)) "
             "OR COALESCE(LENGTH(answer), 0) > answer_bytes "
             "OR (status IS NOT NULL AND answer_bytes = 0)"},
    RowCheck{{"key-row", "an idempotency key has a digest, a time or a status that is none"},
             "SELECT key_sha256 AS id FROM idempotency_keys WHERE length(key_sha256) <> 64 "
             "OR ltrim(key_sha256, '0123456789abcdef') <> '' OR length(body_sha256) <> 64 "
             "OR ltrim(body_sha256, '0123456789abcdef') <> '' "
             "OR NOT (begun_at BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(ended_at, 0) BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(status, 200) BETWEEN 200 AND 599) OR is_whole NOT IN (0, 1)"},
    RowCheck{{"key-answer", "an idempotency key has an answer before its end, or half of one"},
             "SELECT key_sha256 AS id FROM idempotency_keys "
             "WHERE (status IS NULL) <> (body IS NULL) "
             "OR (status IS NOT NULL AND ended_at IS NULL) "
             "OR COALESCE(LENGTH(body), 0) + COALESCE(LENGTH(headers), 0) > bytes"},
    RowCheck{{"delivery-row", "a delivery has a state or a time that is none, or no body to send"},
             "SELECT delivery_id AS id FROM deliveries "
             "WHERE state NOT IN ('waiting', 'delivered', 'dead') "
             "OR (state = 'waiting') <> (ended_at IS NULL) "
             "OR (state = 'waiting' AND body IS NULL) OR url = '' OR type = '' OR attempts < 0 "
             "OR NOT (created_at BETWEEN 0 AND 253402300799) "
             "OR NOT (begun_at BETWEEN 0 AND 253402300799) "
             "OR NOT (due_ms BETWEEN 0 AND 253402300799000)"},
    RowCheck{{"delivery-end", "a delivery's end and its last attempt do not fit each other"},
             "SELECT delivery_id AS id FROM deliveries WHERE (state = 'delivered' AND "
             "(body IS NOT NULL OR last_error IS NOT NULL OR attempts = 0 "
             "OR NOT (COALESCE(last_status, 0) BETWEEN 200 AND 299))) "
             "OR (state = 'dead' AND last_error IS NULL)"},
    RowCheck{{"job-delivery", "a delivery tells of the end of a job that has not ended"},
             "SELECT job_id AS id FROM jobs JOIN deliveries ON delivery_id = job_id "
             "WHERE jobs.ended_at IS NULL OR type <> 'job.' || jobs.state"},
    RowCheck{{"usage-rows", "the usage of an hour is less than that of its runs and turns"},
             kUsageDifference},
    RowCheck{{"budget-window", "a budget's window has counted less than the usage in it"},
             kWindowDifference},
};

constexpr std::array kAskOwnerChecks = {
    OwnerCheck{{"job-owner", "a job is under way without a gateway"},
               "SELECT job_id, instance_id FROM jobs "
               "WHERE state = 'running' AND job_id > $1 ORDER BY job_id LIMIT $2"},
    OwnerCheck{{"key-owner", "the work of an idempotency key is under way without a gateway"},
               "SELECT key_sha256, instance_id FROM idempotency_keys "
               "WHERE ended_at IS NULL AND key_sha256 > $1 ORDER BY key_sha256 LIMIT $2"},
};

}  // namespace

std::span<const RowCheck> ask_row_checks() { return kAskRowChecks; }

std::span<const OwnerCheck> ask_owner_checks() { return kAskOwnerChecks; }

}  // namespace clawdforge
