#!/bin/sh
# A cron job that asks an agent every morning, and waits for nothing:
#
#   0 6 * * *  CLAWDFORGE_URL=… CLAWDFORGE_TOKEN=… cron-job.sh 'What is new in the log?'
#
# It prints the answer to the job of the last time, if that has ended, and hands over the next
# job. Needs curl and jq.
set -eu
prompt=$1
state=${STATE_DIR:-$HOME/.cache/clawdforge-cron}
mkdir -p "$state"

ask() {
  curl -sS --fail-with-body -H "Authorization: Bearer $CLAWDFORGE_TOKEN" \
    -H 'Content-Type: application/json' "$@"
}

if [ -s "$state/job" ]; then
  job=$(ask "$CLAWDFORGE_URL/jobs/$(cat "$state/job")")
  case $(printf '%s' "$job" | jq -r .state) in
    queued | running)
      echo "the job of the last time goes on" >&2
      exit 0
      ;;
    succeeded) printf '%s' "$job" | jq -r .answer.result ;;
    *) printf '%s' "$job" | jq -r '"the job is \(.state): \(.answer.detail // "no answer")"' >&2 ;;
  esac
fi

# Begun again after a crash of the gateway, or where the agent could not be reached.
jq -n --arg prompt "$prompt" --arg agent "${AGENT:-claude}" \
  '{run: {prompt: $prompt, agent: $agent}, attempts: 3, meta: {from: "cron"}}' |
  ask "$CLAWDFORGE_URL/jobs" -d @- | jq -r .job_id > "$state/job.new"
mv "$state/job.new" "$state/job"
