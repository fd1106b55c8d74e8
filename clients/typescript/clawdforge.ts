// A client of the clawdforge gateway: one module without dependencies, for Node 18 or newer and for browsers.
//
//   import { Client } from './clawdforge.js'
//
//   const forge = new Client({ url: 'http://127.0.0.1:8800', token: 'cf_...' })
//   console.log((await forge.run({ prompt: 'Hello', agent: 'demo' })).result)
//   const session = await forge.createSession({ agent: 'demo' })
//   for await (const event of session.stream({ prompt: 'Tell me a story' })) process.stdout.write(textOf(event))
//   await session.close()
//
// The interfaces have the names and the fields of the schemas in the gateway's API description (/openapi.json);
// a test compares them.

const ANSWER_MS_MAX = 3_700_000 // a run may take an hour
const STREAM_SILENCE_MS_MAX = 45_000 // the gateway writes at least a comment every 15 seconds
const RETRY_SECS_MAX = 30 // a longer Retry-After is the caller's to wait for
const WEBHOOK_AGE_SECS_MAX = 300 // an older call may be one that was recorded

// What is asked

export interface RunRequest {
  prompt: string
  agent?: string | null
  model?: string | null
  system?: string | null
  system_mode?: 'append' | 'replace' | null
  effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null
  permission_mode?: 'deny_all' | 'approve_reads' | 'approve_all' | null
  files?: string[] | null
  timeout_secs?: number | null
  include?: string[] | null
  wait?: boolean
  schema?: Record<string, unknown> | null
  tools?: 'none' | 'read' | 'all' | string[] | null
  max_turns?: number | null
}

export interface SessionRequest {
  agent?: string | null
  model?: string | null
  system?: string | null
  system_mode?: 'append' | 'replace' | null
  effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null
  permission_mode?: 'deny_all' | 'approve_reads' | 'ask' | 'approve_all' | null
  mcp_servers?: unknown[] | null
  meta?: Record<string, unknown> | null
  webhook?: string | null
  webhook_events?: string[] | null
}

export interface TurnRequest {
  prompt: string
  files?: string[] | null
  timeout_secs?: number | null
  event_format?: 'acp' | 'simple' | null
  schema?: Record<string, unknown> | null
  stream?: boolean | null
  wait?: boolean
}

export interface JobRequest {
  run?: RunRequest
  turn?: TurnRequest & { session_id: string }
  webhook?: string
  run_at?: number
  attempts?: number
  meta?: Record<string, unknown>
}

export interface PermissionAnswer {
  decision?: 'allow' | 'deny' | null
  option_id?: string | null
}

// What the gateway answers

export interface Usage {
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
}

export interface Denial {
  tool: string
  input: string
}

export interface RunResult {
  ok: boolean
  result: unknown
  duration_ms: number
  stop_reason: string | null
  run_id?: string
  cost_usd?: number | null
  usage?: Usage | null
  denials?: Denial[]
  model?: string | null
}

export interface RunRecord {
  run_id: string
  app_name: string
  agent: string
  model: string | null
  state: string
  started_at: number
  ended_at: number | null
  prompt_bytes: number
  prompt: string | null
  prompt_truncated?: boolean
  result_bytes: number | null
  duration_ms: number | null
  outcome: string | null
  error: string | null
  stop_reason: string | null
  exit_code: number | null
  exit_signal: number | null
  cost_usd: number | null
  usage: Usage | null
}

export interface SessionState {
  session_id: string
  agent: string
  model: string | null
  app_name: string
  created_at: number
  last_turn_at: number | null
  closed_at: number | null
  close_reason: string | null
  turn_count: number
  live: boolean
  busy: boolean
  meta: Record<string, unknown>
  usage: Usage
  cost_usd: number | null
  last_event_id: number
  title: string | null
  permission_mode: string
  effort: string | null
  turns_waiting: number
  questions_open: number
  turn_started_at: number | null
  context: { used: number; size: number } | null
  agent_version: string | null
  delete_at: number | null
}

export interface Turn {
  turn_index: number
  state: 'accepted' | 'done' | 'failed' | 'cancelled' | 'interrupted'
  code: string | null
  error: string | null
  stop_reason: string | null
  started_at: number
  ended_at: number | null
  duration_ms: number | null
  usage: Usage | null
  cost_usd: number | null
  first_event_id: number | null
  last_event_id: number | null
  prompt: string | null
  prompt_truncated?: boolean
  files: string[]
}

export interface TurnResult {
  ok: boolean
  session_id: string
  turn_index: number
  events: Record<string, unknown>[]
  text: string
  stop_reason: string | null
  duration_ms: number
  usage: Usage | null
  cost_usd: number | null
  result?: Record<string, unknown>
  text_truncated?: boolean
  events_truncated?: boolean
  resumed?: boolean
}

export interface Permission {
  id: string
  turn_index: number
  title: string
  kind: string
  options: { option_id: string; name: string; kind: string }[]
  asked_at: number
  expires_at: number | null
}

export interface AskedPermission extends Permission {
  session_id: string
  app_name: string
  session_title: string | null
  agent: string
  tool: Record<string, unknown> | null
  truncated: boolean
}

export interface UploadedFile {
  file_token: string
  ttl_secs: number
  size: number
}

export interface Job {
  job_id: string
  kind: 'run' | 'turn'
  state: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'interrupted'
  created_at: number
  run_at: number | null
  started_at: number | null
  ended_at: number | null
  attempts: number
  max_attempts: number
  session_id: string | null
  turn_index: number | null
  status: number | null
  meta: Record<string, unknown>
}

export interface ShownJob extends Job {
  answer: Record<string, unknown> | null
}

export interface Health {
  ok: boolean
  version: string
  claude_present: boolean
  claude_version: string
  acpx_present: boolean
  acpx_version: string
  claude_login: Record<string, unknown>
  open_sessions: number
  jail: 'own_root' | 'landlock' | 'none'
  limits: 'nothing' | 'counting' | 'cgroup1' | 'cgroup2'
}

/** Of a stream. `id` is null where the event cannot be come back to (`gap`, `state`). */
export interface StreamEvent {
  id: number | null
  event: string
  data: any
}

export interface SessionChanges {
  files: { path: string; added: number; removed: number; binary: boolean }[]
  added: number
  removed: number
}

export interface SessionFile {
  path: string
  size: number
  modified_at: number
}

// What can go wrong

/** The gateway was not reached, or the connection broke. What was asked may have been done. */
export class ConnectionFailed extends Error {}

/** This call was not signed by the gateway, or not now. */
export class WebhookRefused extends Error {}

/**
 * The gateway's refusal. Match on `code`; `retryAfter` are seconds, where waiting helps. `status` is 0 for a turn that
 * failed in a stream, which has its status before it begins.
 */
export class ApiError extends Error {
  readonly code: string
  readonly detail: string
  readonly requestId: string

  constructor(readonly status: number, readonly body: Record<string, any>, readonly retryAfter: number | null = null) {
    super(`${body.code ?? status}: ${body.detail ?? ''}`)
    this.code = String(body.code ?? '')
    this.detail = String(body.detail ?? '')
    this.requestId = String(body.request_id ?? '')
  }
}

/** What the agent says with an event; empty for everything else. */
export function textOf(event: StreamEvent): string {
  const update = event.event === 'update' ? event.data?.params?.update : undefined
  return update?.sessionUpdate === 'agent_message_chunk' ? update.content?.text ?? '' : ''
}

/** An idempotency key that was never used. */
export function newKey(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * The event in `body`, if the gateway that knows `secret` (whsec_...) has signed it; else WebhookRefused. A webhook may
 * come more than once: `webhook-id` of the headers tells.
 */
export async function verifyWebhook(
  secret: string, headers: Record<string, string | string[] | undefined>, body: Uint8Array | string,
  now = Date.now() / 1000,
): Promise<{ type: string; timestamp: string; data: any }> {
  const given = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value ?? '')]))
  const id = given.get('webhook-id') ?? ''
  const timestamp = given.get('webhook-timestamp') ?? ''
  if (!id || !/^[0-9]{1,12}$/.test(timestamp)) throw new WebhookRefused('webhook-id or webhook-timestamp is missing')
  if (Math.abs(now - Number(timestamp)) > WEBHOOK_AGE_SECS_MAX) throw new WebhookRefused('the call is too old')
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const head = new TextEncoder().encode(`${id}.${timestamp}.`)
  const signed = new Uint8Array(head.length + bytes.length)
  signed.set(head)
  signed.set(bytes, head.length)
  const raw = Uint8Array.from(atob(secret.replace(/^whsec_/, '')), (char) => char.charCodeAt(0))
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await globalThis.crypto.subtle.importKey('raw', raw, algorithm, false, ['verify'])
  // While a secret is being replaced there may be several signatures, with blanks in between.
  for (const signature of (given.get('webhook-signature') ?? '').split(' ')) {
    const [version, value = ''] = signature.split(',')
    if (version !== 'v1' || !/^[A-Za-z0-9+/]{43}=$/.test(value)) continue
    const mac = Uint8Array.from(atob(value), (char) => char.charCodeAt(0))
    // The comparison is the library's, whose time does not depend on where they differ.
    if (await globalThis.crypto.subtle.verify('HMAC', key, mac, signed)) {
      return JSON.parse(new TextDecoder().decode(bytes))
    }
  }
  throw new WebhookRefused('the signature is wrong')
}

/** Server-sent events. Only whole ones count: what is cut off comes again. */
class EventParser {
  private rest = ''
  private name = 'message'
  private data: string[] = []
  private id: number | null = null;

  *feed(text: string): Generator<StreamEvent> {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (this.data.length > 0) yield { id: this.id, event: this.name, data: JSON.parse(this.data.join('\n')) }
        this.name = 'message'
        this.data = []
        this.id = null
        continue
      }
      const colon = line.indexOf(':')
      const field = colon < 0 ? line : line.slice(0, colon)
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'event') this.name = value
      else if (field === 'data') this.data.push(value)
      else if (field === 'id' && /^[0-9]+$/.test(value)) this.id = Number(value)
    }
  }
}

type Query = Record<string, string | number | null | undefined>

interface Ask {
  parts?: Record<string, string>
  query?: Query
  body?: unknown
  form?: FormData
  content?: Blob
  key?: string
  headers?: Record<string, string>
  timeoutMs?: number
  retries?: number
}

export interface ClientOptions {
  /** Where the gateway is; in a browser '' is the page's own host. Default: CLAWDFORGE_URL of the environment. */
  url?: string
  /** The app's token; leave it out where a proxy adds it. Default: CLAWDFORGE_TOKEN of the environment. */
  token?: string
  /**
   * How often a request that is safe to repeat (GET, or with an idempotency key) is repeated after a lost connection,
   * 429 or 503, and how often a stream comes back without having got anything.
   */
  retries?: number
  timeoutMs?: number
}

const sleep = (ms: number) => new Promise<void>((resolve) => { setTimeout(resolve, ms) })

const isEnd = (state: string) => state !== 'queued' && state !== 'running'

function environment(name: string): string | undefined {
  return (globalThis as any).process?.env?.[name]
}

async function errorOf(answer: Response): Promise<ApiError> {
  const text = await answer.text().catch(() => '')
  let body: Record<string, any> = { detail: text.slice(0, 200) } // not the gateway's: a proxy's page
  try {
    const parsed = JSON.parse(text)
    if (parsed !== null && typeof parsed === 'object') body = parsed
  } catch { /* it stays text */ }
  const wait = answer.headers.get('Retry-After') ?? ''
  return new ApiError(answer.status, body, /^[0-9]+$/.test(wait) ? Number(wait) : null)
}

async function served(answer: Response): Promise<Response> {
  if (answer.status !== 200) throw await errorOf(answer)
  return answer
}

/** Calls one gateway with one app's token. */
export class Client {
  readonly retries: number
  private readonly url: string
  private readonly token: string
  private readonly timeoutMs: number

  constructor(options: ClientOptions = {}) {
    this.url = (options.url ?? environment('CLAWDFORGE_URL') ?? 'http://127.0.0.1:8800').replace(/\/+$/, '')
    this.token = options.token ?? environment('CLAWDFORGE_TOKEN') ?? ''
    this.retries = options.retries ?? 2
    this.timeoutMs = options.timeoutMs ?? ANSWER_MS_MAX
  }

  // The gateway and the app

  health(): Promise<Health> {
    return this.json('GET', '/healthz')
  }

  async isReady(): Promise<boolean> {
    try {
      return Boolean((await this.json('GET', '/readyz', { retries: 0 })).ok)
    } catch (error) {
      if (error instanceof ConnectionFailed || (error instanceof ApiError && error.status === 503)) return false
      throw error
    }
  }

  whoami(): Promise<Record<string, any>> {
    return this.json('GET', '/whoami')
  }

  async agents(): Promise<Record<string, any>[]> {
    return (await this.json('GET', '/agents')).agents
  }

  /** The questions that are open in all sessions of the app. */
  async openPermissions(): Promise<AskedPermission[]> {
    return (await this.json('GET', '/permissions')).permissions
  }

  /** The owner's directories that the app may use. */
  async workspaces(): Promise<Record<string, any>[]> {
    return (await this.json('GET', '/workspaces')).workspaces
  }

  /** What the app's asks have used: rows, or with `step` series. */
  usage(options: { from?: number; to?: number; by?: string[]; step?: number } = {}): Promise<Record<string, any>> {
    return this.json('GET', '/usage', { query: { ...options, by: options.by?.join(',') } })
  }

  // Runs

  /** One prompt, one answer. */
  run(request: RunRequest, options: { idempotencyKey?: string } = {}): Promise<RunResult> {
    return this.json('POST', '/run', { body: request, key: options.idempotencyKey })
  }

  /** The app's runs, newest first; pages are fetched as they are needed. */
  runs(options: { since?: number; until?: number } = {}): AsyncGenerator<RunRecord> {
    return this.pages('GET', '/runs', 'runs', options)
  }

  getRun(id: string): Promise<RunRecord> {
    return this.json('GET', '/runs/{id}', { parts: { id } })
  }

  /** False: it had ended before. */
  async cancelRun(id: string): Promise<boolean> {
    return (await this.json('POST', '/runs/{id}/cancel', { parts: { id } })).cancelled
  }

  // Jobs

  /** Hands over a run or a turn; gives the job's id. */
  async submitJob(request: JobRequest, options: { idempotencyKey?: string } = {}): Promise<string> {
    return (await this.json('POST', '/jobs', { body: request, key: options.idempotencyKey })).job_id
  }

  /** The app's jobs, newest first. */
  jobs(options: { state?: Job['state'] } = {}): AsyncGenerator<Job> {
    return this.pages('GET', '/jobs', 'jobs', options)
  }

  /** As it is when it has ended, or after `waitSecs` (at most 60). */
  getJob(id: string, options: { waitSecs?: number } = {}): Promise<ShownJob> {
    const headers: Record<string, string> = options.waitSecs ? { Prefer: `wait=${options.waitSecs}` } : {}
    return this.json('GET', '/jobs/{id}', { parts: { id }, headers })
  }

  /** The ended job, or an error after `timeoutSecs`. */
  async waitForJob(id: string, options: { timeoutSecs?: number } = {}): Promise<ShownJob> {
    const end = Date.now() + (options.timeoutSecs ?? ANSWER_MS_MAX / 1000) * 1000
    for (;;) {
      const left = Math.floor((end - Date.now()) / 1000)
      const job = await this.getJob(id, { waitSecs: Math.max(1, Math.min(60, left)) })
      if (isEnd(job.state)) return job
      if (left <= 0) throw new Error(`the job ${id} is ${job.state}`)
    }
  }

  /** False: it had ended before. */
  async cancelJob(id: string): Promise<boolean> {
    return !(await this.json('DELETE', '/jobs/{id}', { parts: { id } })).already_ended
  }

  /** The job's `state` at each change, and the events of a turn, until the job has ended. */
  jobEvents(id: string, options: { lastId?: number } = {}): AsyncGenerator<StreamEvent> {
    return this.follow('GET', '/jobs/{id}/events', { id }, options.lastId ?? null,
      (event) => event.event === 'state' && isEnd(event.data.state))
  }

  // Files

  /** Brings a file; its `file_token` goes into `files` of a run or turn. */
  upload(file: Blob, options: { name?: string; ttlSecs?: number; idempotencyKey?: string } = {}): Promise<UploadedFile> {
    const form = new FormData()
    form.append('file', file, options.name ?? 'file')
    return this.json('POST', '/files', { form, query: { ttl_secs: options.ttlSecs }, key: options.idempotencyKey })
  }

  // Sessions

  async createSession(request: SessionRequest = {}, options: { idempotencyKey?: string } = {}): Promise<Session> {
    const made = await this.json('POST', '/sessions', { body: request, key: options.idempotencyKey })
    return new Session(this, made.session_id, 0)
  }

  /** A session that was made before. */
  async session(id: string): Promise<Session> {
    const state: SessionState = await this.json('GET', '/sessions/{id}', { parts: { id } })
    return new Session(this, id, state.turn_count)
  }

  /** The app's sessions, newest first. */
  sessions(options: { includeClosed?: boolean } = {}): AsyncGenerator<SessionState> {
    return this.pages('GET', '/sessions', 'sessions', { include_closed: options.includeClosed ? 'true' : undefined })
  }

  // How it is asked; for Session, not for callers

  /** Sends one request and gives its answer, whatever its status. */
  async open(method: string, route: string, ask: Ask, signal: AbortSignal): Promise<Response> {
    let path = route
    for (const [name, value] of Object.entries(ask.parts ?? {})) {
      const quoted = name === 'path' ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value)
      path = path.replace(`{${name}}`, quoted)
    }
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(ask.query ?? {})) {
      if (value !== undefined && value !== null) query.append(name, String(value))
    }
    const headers: Record<string, string> = { Accept: 'application/json', ...ask.headers }
    if (this.token) headers.Authorization = `Bearer ${this.token}`
    if (ask.key !== undefined) headers['Idempotency-Key'] = ask.key
    let body: FormData | Blob | string | undefined = ask.form ?? ask.content
    if (ask.content !== undefined) headers['Content-Type'] = 'application/octet-stream'
    if (ask.body !== undefined) {
      body = JSON.stringify(ask.body)
      headers['Content-Type'] = 'application/json'
    }
    try {
      const text = query.toString()
      return await fetch(this.url + path + (text ? `?${text}` : ''), { method, headers, body, signal })
    } catch (lost) {
      throw new ConnectionFailed(`the gateway does not answer: ${(lost as Error).message}`)
    }
  }

  /** The JSON of a success; throws ApiError. Repeats what is safe to repeat. */
  async json(method: string, route: string, ask: Ask = {}): Promise<any> {
    let left = method === 'GET' || ask.key !== undefined ? ask.retries ?? this.retries : 0
    for (;;) {
      let pause = 0.5
      const limit = new AbortController()
      const timer = setTimeout(() => limit.abort(), ask.timeoutMs ?? this.timeoutMs)
      try {
        const answer = await this.open(method, route, ask, limit.signal)
        if (answer.ok) return await this.whole(answer)
        const error = await errorOf(answer)
        const mayPass = answer.status === 429 || answer.status === 503
        if (left <= 0 || !mayPass || error.retryAfter === null || error.retryAfter > RETRY_SECS_MAX) throw error
        pause = error.retryAfter
      } catch (error) {
        if (!(error instanceof ConnectionFailed) || left <= 0) throw error
      } finally {
        clearTimeout(timer)
      }
      left -= 1
      await sleep(pause * 1000)
    }
  }

  private async whole(answer: Response): Promise<any> {
    try {
      return await answer.json()
    } catch (lost) {
      throw new ConnectionFailed(`the answer broke off: ${(lost as Error).message}`)
    }
  }

  private async *pages(method: string, route: string, name: string, query: Query): AsyncGenerator<any> {
    let cursor: string | null = null
    do {
      const page: any = await this.json(method, route, { query: { ...query, cursor } })
      yield* page[name]
      cursor = page.next_cursor
    } while (cursor !== null)
  }

  /** The events of one connection. */
  async *stream(
    method: string, route: string, ask: Ask, lastId: number | null = null, onAccepted: () => void = () => {},
  ): AsyncGenerator<StreamEvent> {
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (lastId !== null) headers['Last-Event-ID'] = String(lastId)
    const connection = new AbortController()
    let timer = setTimeout(() => connection.abort(), STREAM_SILENCE_MS_MAX)
    try {
      const answer = await this.open(method, route, { ...ask, headers }, connection.signal)
      if (answer.status === 204) return // the session is closed, and all of it was told
      if (answer.status !== 200) throw await errorOf(answer)
      onAccepted()
      const reader = answer.body!.getReader()
      const decoder = new TextDecoder()
      const parser = new EventParser()
      for (;;) {
        let piece
        try {
          piece = await reader.read()
        } catch (lost) {
          throw new ConnectionFailed(`the stream broke off: ${(lost as Error).message}`)
        }
        if (piece.done) return
        clearTimeout(timer)
        timer = setTimeout(() => connection.abort(), STREAM_SILENCE_MS_MAX)
        yield* parser.feed(decoder.decode(piece.value, { stream: true }))
      }
    } finally {
      clearTimeout(timer)
      connection.abort()
    }
  }

  /**
   * Events after `lastId`, over as many connections as it takes, up to one that `isLast`, or until the gateway ends the
   * stream because there will be nothing more.
   */
  async *follow(
    method: string, route: string, parts: Record<string, string>, lastId: number | null,
    isLast: (event: StreamEvent) => boolean,
  ): AsyncGenerator<StreamEvent> {
    for (let tries = 0; ; tries += 1) {
      let hasMore = false
      try {
        for await (const event of this.stream(method, route, { parts }, lastId)) {
          if (event.event === 'lagged' || event.event === 'shutdown') {
            hasMore = true
            continue
          }
          lastId = event.id ?? lastId
          tries = 0
          yield event
          if (isLast(event)) return
        }
        if (!hasMore) return
      } catch (error) {
        const mayPass = error instanceof ConnectionFailed || (error instanceof ApiError && error.status === 503)
        if (!mayPass || tries >= this.retries) throw error
      }
      await sleep(Math.min(1000 * 2 ** tries, RETRY_SECS_MAX * 1000))
    }
  }
}

/**
 * A conversation; `close()` it. Two readers that call `stream()` of the same object at the same time could each get the
 * other's events after a lost connection.
 */
export class Session {
  private last = { id: 0, turn: 0 } // the last closing event that we saw

  constructor(private readonly client: Client, readonly id: string, private turnCount: number) {}

  state(): Promise<SessionState> {
    return this.client.json('GET', '/sessions/{id}', { parts: { id: this.id } })
  }

  /** False: it was closed before. */
  async close(): Promise<boolean> {
    return !(await this.client.json('DELETE', '/sessions/{id}', { parts: { id: this.id } })).already_closed
  }

  /** One prompt, and its whole answer. */
  async turn(request: TurnRequest, options: { idempotencyKey?: string } = {}): Promise<TurnResult> {
    const done: TurnResult = await this.client.json('POST', '/sessions/{id}/turn',
      { parts: { id: this.id }, body: { ...request, stream: false }, key: options.idempotencyKey })
    this.turnCount = Math.max(this.turnCount, done.turn_index)
    return done
  }

  /**
   * The same as it happens, up to the event `done`; ApiError if the turn fails. A lost connection, and a restart of the
   * gateway, are healed: no event is missed, and none comes twice.
   */
  async *stream(request: TurnRequest): AsyncGenerator<StreamEvent> {
    const before = this.turnCount
    let lastId = 0
    let isAccepted = false
    for (let attempt = 0; ; attempt += 1) {
      try {
        const ask = { parts: { id: this.id }, body: { ...request, stream: true } }
        for await (const event of this.client.stream('POST', '/sessions/{id}/turn', ask, null,
          () => { isAccepted = true })) {
          lastId = event.id ?? lastId
          yield this.seen(event)
          if (event.event === 'done') return
        }
        break // it ended without a closing event
      } catch (error) {
        if (!(error instanceof ConnectionFailed)) throw error
        // Was it accepted? The count of turns tells, for a caller that is alone in its session.
        if (isAccepted || (await this.state()).turn_count > before) break
        if (attempt >= this.client.retries) throw error
      }
    }
    for await (const event of this.restOfTurn(before, lastId)) yield this.seen(event)
  }

  // Turns of a session run one after another. If we have no event of ours yet, those of turns that we did not read come
  // first: up to the closing event of the turn before.
  private async *restOfTurn(before: number, lastId: number): AsyncGenerator<StreamEvent> {
    let isOurs = lastId > 0 || this.last.turn >= before
    const isClosing = (event: StreamEvent) => event.event === 'done' || event.event === 'failed'
    const isLast = (event: StreamEvent) => isClosing(event) && event.data.turn_index > before
    for await (const event of this.client.follow('GET', '/sessions/{id}/events', { id: this.id },
      lastId || this.last.id, isLast)) {
      if (isOurs || isLast(event)) yield event
      else if (isClosing(event)) isOurs = event.data.turn_index >= before
    }
  }

  private seen(event: StreamEvent): StreamEvent {
    if (event.event === 'done' || event.event === 'failed') {
      this.last = { id: event.id ?? 0, turn: event.data.turn_index }
      this.turnCount = Math.max(this.turnCount, event.data.turn_index)
      if (event.event === 'failed') throw new ApiError(0, event.data)
    }
    return event
  }

  /** All that was told in the session after the event `after`, and what comes, until it is closed. */
  events(options: { after?: number } = {}): AsyncGenerator<StreamEvent> {
    return this.client.follow('GET', '/sessions/{id}/events', { id: this.id }, options.after ?? 0, () => false)
  }

  /** The session's turns after the one of index `after`: how each ended, and what it was asked. */
  async *turns(options: { after?: number } = {}): AsyncGenerator<Turn> {
    for (let after: number | null = options.after ?? 0; after !== null;) {
      const page: { turns: Turn[]; next_after: number | null } = await this.client.json('GET', '/sessions/{id}/turns',
        { parts: { id: this.id }, query: { after } })
      for (const turn of page.turns) yield turn
      after = page.next_after
    }
  }

  /** Ends the turn that runs; false: none ran. */
  async cancel(): Promise<boolean> {
    return (await this.client.json('POST', '/sessions/{id}/cancel', { parts: { id: this.id } })).cancelled
  }

  /** What the agent asks and is not decided yet. */
  async permissions(): Promise<Permission[]> {
    return (await this.client.json('GET', '/sessions/{id}/permissions', { parts: { id: this.id } })).permissions
  }

  async answerPermission(permission: string, answer: PermissionAnswer): Promise<void> {
    await this.client.json('POST', '/sessions/{id}/permissions/{permission}',
      { parts: { id: this.id, permission }, body: answer })
  }

  async files(): Promise<SessionFile[]> {
    return (await this.client.json('GET', '/sessions/{id}/files', { parts: { id: this.id } })).files
  }

  /** A file of the session; its `body` is a stream. */
  async download(path: string): Promise<Response> {
    return served(await this.client.open('GET', '/sessions/{id}/files/{path}',
      { parts: { id: this.id, path }, headers: { Accept: '*/*' } }, new AbortController().signal))
  }

  /** Puts a file into the session's directory; true: one of that name was replaced. */
  async putFile(path: string, content: Blob): Promise<boolean> {
    return (await this.client.json('PUT', '/sessions/{id}/files/{path}', { parts: { id: this.id, path }, content }))
      .replaced
  }

  /** Which files have changed since the session began, and by how many lines. */
  async changes(): Promise<SessionChanges> {
    return this.client.json('GET', '/sessions/{id}/diff', { parts: { id: this.id }, query: { stat: '1' } })
  }

  /** What has changed, as a unified diff; its `body` is a stream. */
  async diff(): Promise<Response> {
    return served(await this.client.open('GET', '/sessions/{id}/diff',
      { parts: { id: this.id }, headers: { Accept: '*/*' } }, new AbortController().signal))
  }

  /** The session's directory as a tar; its `body` is a stream. */
  async archive(): Promise<Response> {
    return served(await this.client.open('GET', '/sessions/{id}/archive',
      { parts: { id: this.id }, headers: { Accept: '*/*' } }, new AbortController().signal))
  }

  /** Commits what is in the session's worktree on its branch; gives the commit's id. */
  async commit(message: string): Promise<string> {
    return (await this.client.json('POST', '/sessions/{id}/commit', { parts: { id: this.id }, body: { message } }))
      .commit
  }
}
