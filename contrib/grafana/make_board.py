"""Makes clawdforge.json, the board: the panels are the table below.

    python3 contrib/grafana/make_board.py > contrib/grafana/clawdforge.json
"""
import json

RATE = "[$__rate_interval]"
PANELS = [  # title, unit, (query, legend)...
    ("Up", "none", ('up{job="$job"}', "{{instance}}")),
    ("Asks by app", "ops", (f'sum by (app) (rate(clawdforge_asks_total{{job="$job"}}{RATE}))', "{{app}}")),
    ("Cost by app, dollars an hour", "currencyUSD",
     (f'sum by (app) (rate(clawdforge_ask_cost_microusd_total{{job="$job"}}{RATE})) * 3600 / 1e6', "{{app}}")),
    ("Tokens by kind", "short", (f'sum by (kind) (rate(clawdforge_ask_tokens_total{{job="$job"}}{RATE}))', "{{kind}}")),
    ("Refused by code", "ops",
     (f'sum by (code) (rate(clawdforge_asks_refused_total{{job="$job"}}{RATE}))', "{{code}}")),
    ("Runs by state", "ops", (f'sum by (state) (rate(clawdforge_runs_total{{job="$job"}}{RATE}))', "{{state}}")),
    ("Turns by state", "ops", (f'sum by (state) (rate(clawdforge_turns_total{{job="$job"}}{RATE}))', "{{state}}")),
    ("Places", "short", ('clawdforge_runs_running{job="$job"}', "runs"), ('clawdforge_runs_waiting{job="$job"}', "runs that wait"),
     ('clawdforge_agents_running{job="$job"}', "agents"), ('clawdforge_agents_waiting{job="$job"}', "sessions that wait")),
    ("Jobs", "short", ('clawdforge_jobs{job="$job"}', "{{state}}"),
     ('clawdforge_jobs_in_hand{job="$job"}', "in hand")),
    ("Requests by status", "reqps",
     (f'sum by (status) (rate(clawdforge_http_requests_total{{job="$job"}}{RATE}))', "{{status}}")),
    ("Answers within, 99 of 100", "s",
     (f'histogram_quantile(0.99, sum by (le, route) (rate(clawdforge_http_request_seconds_bucket{{job="$job"}}{RATE})))',
      "{{route}}")),
    ("Connections and streams", "short", ('clawdforge_http_connections{job="$job"}', "connections"),
     ('clawdforge_event_readers{job="$job"}', "streams")),
    ("Ledger, 99 of 100", "s",
     (f'histogram_quantile(0.99, sum by (le) (rate(clawdforge_ledger_commit_seconds_bucket{{job="$job"}}{RATE})))', "commit"),
     (f'histogram_quantile(0.99, sum by (le) (rate(clawdforge_ledger_call_seconds_bucket{{job="$job"}}{RATE})))', "call")),
    ("Event loop late, 99 of 100", "s",
     (f'histogram_quantile(0.99, sum by (le) (rate(clawdforge_io_loop_lag_seconds_bucket{{job="$job"}}{RATE})))', "lag")),
    ("Memory held", "bytes", ('clawdforge_memory_held_bytes{job="$job"}', "held")),
    ("Webhooks by outcome", "ops",
     (f'sum by (outcome) (rate(clawdforge_deliveries_total{{job="$job"}}{RATE}))', "{{outcome}}")),
]


def panel(number, title, unit, *queries):
    return {
        "id": number + 1, "type": "timeseries", "title": title, "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": {"x": 8 * (number % 3), "y": 7 * (number // 3), "w": 8, "h": 7},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend}
                    for index, (query, legend) in enumerate(queries)],
    }


print(json.dumps({
    "title": "clawdforge", "uid": "clawdforge", "schemaVersion": 37, "refresh": "30s", "time": {"from": "now-6h", "to": "now"},
    "templating": {"list": [
        {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
        {"name": "job", "type": "textbox", "query": "clawdforge", "current": {"text": "clawdforge", "value": "clawdforge"}},
    ]},
    "panels": [panel(number, *row) for number, row in enumerate(PANELS)],
}, indent=1))
