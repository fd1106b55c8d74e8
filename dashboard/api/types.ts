// The shapes of the API that the page reads. docs/openapi.yaml has all of them; what may be absent in an older or a
// cut-down answer is optional here, and the page stands without it.

export interface Usage {
  input_tokens: number | null;
  output_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
}

export interface WhoAmI {
  kind: "admin" | "app";
  name?: string;
  max_sessions?: number | null;
  max_runs?: number | null;
  agents?: string[];
}

export interface SessionState {
  session_id: string;
  agent: string;
  model: string | null;
  app_name: string;
  created_at: number;
  last_turn_at: number | null;
  closed_at: number | null;
  close_reason: string | null;
  turn_count: number;
  live: boolean;
  busy: boolean;
  meta: Record<string, unknown>;
  usage: Usage | null;
  cost_usd: number | null;
  title?: string | null;
  permission_mode?: string | null;
  effort?: string | null;
  turns_waiting?: number;
  questions_open?: number;
  turn_started_at?: number | null;
  context?: { used: number; size: number } | null;
  last_event_id?: number;
  agent_version?: string | null;
  delete_at?: number | null;
  closes_at?: number | null;
  workspace?: string | null;
  workspace_mode?: string | null;
  branch?: string | null;
}

export interface SessionList {
  sessions: SessionState[];
  count: number;
  next_cursor: string | null;
}

export interface JournalEvent {
  id: number | null;
  event: string;
  data: unknown;
  turn_index?: number;
  at?: number;
  offset_ms?: number;
}

export interface AskOption {
  option_id: string;
  name: string;
  kind: string;
}

export interface Question {
  id: string;
  turn_index: number;
  title: string | null;
  kind: string | null;
  options: AskOption[];
  asked_at: number;
  expires_at: number | null;
  session_id?: string;
  app_name?: string;
  session_title?: string | null;
  agent?: string;
  tool?: ToolSaid | null;
  truncated?: boolean;
}

/** What the agent says of the tool that it wants to use. */
export interface ToolSaid {
  title?: string;
  kind?: string;
  rawInput?: unknown;
  content?: unknown;
  locations?: unknown;
  truncated?: boolean;
}

export interface Run {
  run_id: string;
  app_name: string;
  agent: string;
  model: string | null;
  state: string;
  started_at: number;
  ended_at: number | null;
  prompt_bytes: number;
  result_bytes: number | null;
  duration_ms: number | null;
  outcome: string | null;
  error: string | null;
  stop_reason: string | null;
  exit_code: number | null;
  exit_signal: number | null;
  cost_usd: number | null;
  usage: Usage | null;
  instance_id?: string;
  request_id?: string | null;
  prompt?: string | null;
  result?: unknown;
  waited_ms?: number | null;
}

export interface RunList {
  runs: Run[];
  count: number;
  next_cursor: string | null;
}

export interface AgentWindow {
  name: string;
  used: number | null;
  resets_at: number | null;
  seen_at?: number;
}

export interface Agent {
  name: string;
  protocol: string;
  present: boolean;
  version: string;
  login: string;
  login_command?: string | string[] | null;
  remedy?: string | null;
  door?: { code: string; until: number } | null;
  windows?: AgentWindow[] | null;
  live?: number;
  models?: string[] | null;
}

export interface Budget {
  window: string;
  unit: string;
  limit: number;
  used?: number;
  reserved?: number;
  resets_at?: number | null;
}

export interface App {
  name: string;
  ip_cidrs: string[];
  event_format: string | null;
  max_sessions: number | null;
  max_runs: number | null;
  agents?: string[] | null;
  models?: string[] | null;
  permission_mode_max?: string | null;
  created_at: number;
  last_used_at: number | null;
  sessions_open?: number;
  runs_running?: number;
  runs_waiting?: number;
  sha256_prefix?: string;
  expires_at?: number | null;
  asks_per_minute?: number | null;
  budgets?: Budget[] | null;
  private?: boolean;
}

export interface AuditEvent {
  session_id: string | null;
  app_name: string | null;
  event: string;
  at: number;
  actor?: string | null;
  meta: Record<string, unknown>;
}

export interface AuditList {
  events: AuditEvent[];
  count: number;
  next_cursor: string | null;
}

export interface UsageSeries {
  key: Record<string, string | null> | string;
  asks: number[];
  failed: number[];
  input_tokens: number[];
  output_tokens: number[];
  cache_read_tokens: number[];
  cache_write_tokens: number[];
  cost_usd: number[];
  agent_ms: number[];
  p50_ms: (number | null)[];
  p90_ms: (number | null)[];
  p99_ms: (number | null)[];
  requests?: number[];
  refused?: number[];
  cancelled?: number[];
}

export interface UsageColumns {
  from: number;
  to: number;
  step: number;
  times: number[];
  series: UsageSeries[];
}

export interface UsageRow {
  app?: string;
  agent?: string;
  asks: number;
  failed: number;
  cancelled?: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_usd: number;
  agent_ms: number;
}

export interface UsageRows {
  rows: UsageRow[];
  totals: UsageRow;
}

export interface SessionFile {
  path: string;
  size: number;
  modified_at: number;
}
export interface FileList {
  files: SessionFile[];
  count: number;
  truncated: boolean;
}

/** A bounded thing: what is used of it, and its bound. */
export interface Gauge {
  used: number;
  max: number | null;
  waiting?: number;
}
