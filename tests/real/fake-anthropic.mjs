#!/usr/bin/env node
// A loopback stand-in for the Anthropic Messages API. No model, no network:
// answers are made up from the request, or from a script that the prompt carries.
// Node >= 18, no dependencies. model_api.py starts it and talks to its control plane.
//
// A prompt may carry a script, [[fake:{...}]] or [[fake:[{...},{...}]]]: one step per answer of
// the model. The keys of a step:
//   text, thinking, tool {name, input}, tools [..], stop_reason, usage   what is answered
//   recall   answers with all that the user has said in this conversation
//   status, message, error_type, retry_after, should_retry, headers, times   an API error
//   delay_ms, chunk_ms, chunks, hang, reset, cut_after, stream_error   how, or that it is not
// Without a script it answers "fake reply to: " and the prompt.
import http from 'node:http';
import fs from 'node:fs';
import path from 'node:path';
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';

const argv = process.argv.slice(2);
const opt = (name, dflt) => {
  const i = argv.indexOf('--' + name);
  if (i < 0) return dflt;
  const v = argv[i + 1];
  return v === undefined || v.startsWith('--') ? true : v;
};
if (opt('help', false)) {
  console.log('usage: fake-anthropic.mjs [--port N|0] [--port-file F] [--log F.jsonl] [--dump DIR] [--key K] [--delay-ms N] [--quiet]');
  process.exit(0);
}
const HOST = '127.0.0.1';
const PORT = Number(opt('port', process.env.FAKE_PORT ?? 0));
const LOG = opt('log', null);
const DUMP = opt('dump', null);
const KEY = opt('key', null); // when set: any other key gets 401
const DELAY = Number(opt('delay-ms', 0));
const logFd = LOG ? fs.openSync(LOG, 'a') : null;
if (DUMP) fs.mkdirSync(DUMP, { recursive: true });

const now = () => performance.timeOrigin + performance.now(); // ms since epoch, sub-ms
const id = (p) => p + '_' + randomBytes(12).toString('hex');
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

let seq = 0;
let requests = []; // ring of the last 5000 requests
let defaults = {}; // a step merged under every step, set through POST /__fake/default
const failures = new Map(); // key -> how often a "times"-limited failure was already given
const stats = { requests: 0, messages: 0, count_tokens: 0, other: 0, inflight: 0, max_inflight: 0, aborted: 0 };

function record(entry) {
  requests.push(entry);
  if (requests.length > 5000) requests.shift();
  return entry;
}
function flush(entry) {
  if (logFd !== null) fs.writeSync(logFd, JSON.stringify(entry) + '\n');
}

const textOf = (content) =>
  typeof content === 'string'
    ? content
    : Array.isArray(content)
      ? content.filter((b) => b?.type === 'text').map((b) => b.text).join('\n')
      : '';

const MARK = /\[\[fake:(\{[\s\S]*?\}|\[[\s\S]*?\])\]\]/g;

// The text a person (not the CLI) wrote in one user message: no tool results, no reminders.
// Claude Code also sends {"role":"system"} entries inside messages[]; those are skipped.
// A prompt that failed or was interrupted stays in the history and shares one user message
// with the next prompt, as an earlier text block: so only the last text block counts.
const NOISE = /^\s*(<system-reminder>|<local-command|<command-|\[Image: source|\[Request interrupted)/;
function promptOf(m) {
  if (m?.role !== 'user') return null;
  const c = m.content;
  if (typeof c === 'string') return NOISE.test(c) ? null : c;
  const texts = (c ?? []).filter((b) => b?.type === 'text' && !NOISE.test(b.text)).map((b) => b.text);
  return texts.length ? texts[texts.length - 1] : null;
}

// The script is stateless: it is found in the newest real user prompt, and the step is the
// number of assistant messages since. So a tool loop walks down the steps.
function findStep(body) {
  const msgs = body.messages ?? [];
  let assistants = 0;
  for (let i = msgs.length - 1; i >= 0; i--) {
    if (msgs[i].role === 'assistant') { assistants++; continue; }
    const text = promptOf(msgs[i]);
    if (text === null) continue;
    const all = [...text.matchAll(MARK)];
    if (!all.length) return { step: {}, raw: '', n: assistants };
    const raw = all[all.length - 1][1];
    let script;
    try { script = JSON.parse(raw); } catch (e) { return { step: { text: 'fake: bad script: ' + e.message }, raw, n: 0 }; }
    const steps = Array.isArray(script) ? script : script.steps ?? [script];
    const n = Math.min(assistants, steps.length - 1);
    // past the last step of a scripted tool call: answer with plain text, so loops end
    if (assistants >= steps.length && !steps[n].repeat && (steps[n].tool || steps[n].tools || steps[n].structured)) return { step: { text: 'done' }, raw, n: assistants };
    return { step: steps[n], raw, n };
  }
  return { step: {}, raw: '', n: 0 };
}

function lastPrompt(body) {
  const msgs = body.messages ?? [];
  for (let i = msgs.length - 1; i >= 0; i--) {
    const t = promptOf(msgs[i]);
    if (t !== null) return t;
  }
  return '';
}

// What the user has said so far, oldest first, without the scripts.
function saidSoFar(body) {
  const said = [];
  for (const m of body.messages ?? []) {
    if (m?.role !== 'user') continue;
    const blocks = typeof m.content === 'string' ? [{ type: 'text', text: m.content }] : m.content ?? [];
    for (const b of blocks) if (b?.type === 'text' && !NOISE.test(b.text)) said.push(b.text.replace(MARK, '').trim());
  }
  return said;
}

const ERR = {
  400: ['invalid_request_error', 'fake: invalid request'],
  401: ['authentication_error', 'invalid x-api-key'],
  403: ['permission_error', 'fake: forbidden'],
  404: ['not_found_error', 'fake: not found'],
  413: ['request_too_large', 'fake: request too large'],
  429: ['rate_limit_error', 'fake: rate limited'],
  500: ['api_error', 'Internal server error'],
  503: ['api_error', 'fake: unavailable'],
  529: ['overloaded_error', 'Overloaded'],
};

function blocksFor(step, body) {
  const out = [];
  if (step.thinking) out.push({ type: 'thinking', thinking: step.thinking, signature: 'ZmFrZQ==' });
  let text = step.text;
  const tools = step.tools ?? (step.tool ? [step.tool] : []);
  if (step.repeat_bytes) text = 'x'.repeat(step.repeat_bytes);
  if (step.recall) text = 'you said: ' + saidSoFar(body).join(' | ');
  // --json-schema is done by a StructuredOutput tool: give it what the script says, or {}
  const structured = (body.tools ?? []).find((t) => t.name === 'StructuredOutput');
  if (structured && step.structured !== undefined) {
    tools.push({ name: 'StructuredOutput', input: step.structured });
  }
  if (text === undefined && !tools.length) {
    const p = lastPrompt(body).replace(MARK, '').trim();
    text = 'fake reply to: ' + (p.length > 200 ? p.slice(0, 200) + `… (${p.length} chars)` : p);
  }
  if (text !== undefined && text !== '') out.push({ type: 'text', text });
  for (const t of tools) out.push({ type: 'tool_use', id: t.id ?? id('toolu'), name: t.name, input: t.input ?? {} });
  return out;
}

function usageFor(body, raw, blocks, step) {
  const out = Math.max(1, Math.ceil(JSON.stringify(blocks).length / 4));
  return {
    input_tokens: Math.ceil(raw / 4),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: out,
    service_tier: 'standard',
    ...(step.usage ?? {}),
  };
}

function sendJson(res, status, obj, headers = {}) {
  const b = Buffer.from(JSON.stringify(obj));
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': b.length, 'request-id': id('req'), ...headers });
  res.end(b);
}
function sendError(res, status, step = {}) {
  const [type, message] = ERR[status] ?? ['api_error', 'fake error ' + status];
  const headers = {};
  if (step.retry_after !== undefined) headers['retry-after'] = String(step.retry_after);
  if (step.should_retry !== undefined) headers['x-should-retry'] = String(step.should_retry);
  Object.assign(headers, step.headers ?? {});
  sendJson(res, status, { type: 'error', error: { type: step.error_type ?? type, message: step.message ?? message }, request_id: id('req') }, headers);
}

async function messages(req, res, body, rawLen, entry) {
  const found = findStep(body);
  const step = { ...defaults, ...found.step };
  entry.step = found.n;
  entry.model = body.model;
  entry.stream = !!body.stream;
  entry.max_tokens = body.max_tokens;
  entry.n_messages = body.messages?.length;
  entry.n_tools = body.tools?.length ?? 0;
  entry.tools = (body.tools ?? []).map((t) => t.name ?? t.type);
  entry.system_chars = textOf(body.system).length;
  entry.prompt = lastPrompt(body).slice(0, 120);
  entry.prompt_chars = lastPrompt(body).length;
  entry.thinking = body.thinking;
  entry.output_config = body.output_config;
  entry.metadata = body.metadata;

  const delay = step.delay_ms ?? DELAY;
  if (delay) await sleep(delay);
  if (res.destroyed) return;
  if (step.hang) return; // never answer; the client must give up
  if (step.reset) { req.socket.destroy(); return; }
  if (step.status && step.status !== 200) {
    const k = found.raw + '#' + found.n + '#' + (body.metadata?.user_id ?? '');
    const given = failures.get(k) ?? 0;
    if (step.times === undefined || given < step.times) {
      failures.set(k, given + 1);
      entry.status = step.status;
      return sendError(res, step.status, step);
    }
  }
  const blocks = blocksFor(step, body);
  const usage = usageFor(body, rawLen, blocks, step);
  const stop = step.stop_reason ?? (blocks.some((b) => b.type === 'tool_use') ? 'tool_use' : 'end_turn');
  const msg = { id: id('msg'), type: 'message', role: 'assistant', model: body.model, content: blocks, stop_reason: stop, stop_sequence: null, usage };
  entry.status = 200;
  entry.stop_reason = stop;
  if (!body.stream) return sendJson(res, 200, msg, step.headers ?? {});

  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', 'request-id': id('req'), ...(step.headers ?? {}) });
  let events = 0;
  const ev = (type, data) => {
    if (step.cut_after !== undefined && events >= step.cut_after) { req.socket.destroy(); return false; }
    events++;
    if (res.destroyed) return false;
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    return true;
  };
  if (!ev('message_start', { message: { ...msg, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } } })) return;
  if (step.ping !== false) ev('ping', {});
  const pause = step.chunk_ms ?? 0;
  const pieces = (s, n) => {
    if (!s) return [''];
    const k = Math.max(1, Math.min(n, s.length));
    const size = Math.ceil(s.length / k);
    const r = [];
    for (let i = 0; i < s.length; i += size) r.push(s.slice(i, i + size));
    return r;
  };
  for (let i = 0; i < blocks.length; i++) {
    const b = blocks[i];
    const n = step.chunks ?? 3;
    let start, deltas;
    if (b.type === 'text') { start = { type: 'text', text: '' }; deltas = pieces(b.text, n).map((t) => ({ type: 'text_delta', text: t })); }
    else if (b.type === 'thinking') {
      start = { type: 'thinking', thinking: '', signature: '' };
      deltas = pieces(b.thinking, n).map((t) => ({ type: 'thinking_delta', thinking: t }));
      deltas.push({ type: 'signature_delta', signature: b.signature });
    } else { start = { ...b, input: {} }; deltas = pieces(JSON.stringify(b.input), n).map((t) => ({ type: 'input_json_delta', partial_json: t })); }
    if (!ev('content_block_start', { index: i, content_block: start })) return;
    for (const d of deltas) {
      if (pause) await sleep(pause);
      if (!ev('content_block_delta', { index: i, delta: d })) return;
    }
    if (!ev('content_block_stop', { index: i })) return;
  }
  if (step.stream_error) { // an error inside a 200 stream
    const [type, message] = ERR[step.stream_error] ?? ['api_error', 'fake stream error'];
    ev('error', { error: { type, message } });
    return res.end();
  }
  if (!ev('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: usage.output_tokens } })) return;
  if (!ev('message_stop', {})) return;
  res.end();
}

const server = http.createServer((req, res) => {
  const t = now();
  const url = new URL(req.url, 'http://x');
  const chunks = [];
  req.on('data', (c) => chunks.push(c));
  req.on('error', () => {});
  req.on('end', async () => {
    const raw = Buffer.concat(chunks);
    if (url.pathname.startsWith('/__fake/')) return control(req, res, url, raw);
    stats.requests++;
    stats.inflight++;
    stats.max_inflight = Math.max(stats.max_inflight, stats.inflight);
    const h = { ...req.headers };
    const key = h['x-api-key'] ?? (h.authorization ?? '').replace(/^Bearer /i, '');
    for (const k of ['x-api-key', 'authorization']) if (h[k]) h[k] = `<${h[k].length} chars>`;
    const entry = record({ seq: ++seq, t, method: req.method, path: req.url, bytes: raw.length, port: req.socket.remotePort, headers: h });
    let done = false;
    const finish = () => {
      if (done) return;
      done = true;
      stats.inflight--;
      entry.t_end = now();
      entry.aborted = !res.writableFinished;
      if (entry.aborted) stats.aborted++;
      flush(entry);
    };
    res.on('close', finish);
    let body = {};
    try { if (raw.length) body = JSON.parse(raw.toString('utf8')); } catch { /* not JSON */ }
    if (DUMP) fs.writeFileSync(path.join(DUMP, String(entry.seq).padStart(5, '0') + '.json'), JSON.stringify({ method: req.method, path: req.url, headers: h, body }, null, 1));
    try {
      if (KEY && key !== KEY) { entry.status = 401; return sendError(res, 401); }
      if (req.method === 'POST' && url.pathname === '/v1/messages') { stats.messages++; return await messages(req, res, body, raw.length, entry); }
      if (req.method === 'POST' && url.pathname === '/v1/messages/count_tokens') { stats.count_tokens++; entry.status = 200; return sendJson(res, 200, { input_tokens: Math.ceil(raw.length / 4) }); }
      stats.other++;
      if (req.method === 'GET' && url.pathname === '/v1/models') {
        entry.status = 200;
        const m = ['claude-opus-4-5', 'claude-sonnet-4-5', 'claude-haiku-4-5'].map((x) => ({ type: 'model', id: x, display_name: x, created_at: '2025-10-01T00:00:00Z' }));
        return sendJson(res, 200, { data: m, has_more: false, first_id: m[0].id, last_id: m[m.length - 1].id });
      }
      if (req.method === 'HEAD') { entry.status = 200; res.writeHead(200); return res.end(); }
      entry.status = 404;
      return sendError(res, 404);
    } catch (e) {
      entry.status = 500;
      entry.fault = String(e?.stack ?? e);
      if (!res.headersSent) sendError(res, 500, { message: String(e) }); else res.destroy();
    }
  });
});

// Control plane for tests (never part of the real API).
function control(req, res, url, raw) {
  const body = raw.length ? JSON.parse(raw.toString('utf8')) : {};
  if (url.pathname === '/__fake/log') {
    const since = Number(url.searchParams.get('since') ?? 0);
    return sendJson(res, 200, requests.filter((r) => r.seq > since));
  }
  if (url.pathname === '/__fake/stats') return sendJson(res, 200, { ...stats, now: now(), pid: process.pid, rss: process.memoryUsage().rss });
  if (url.pathname === '/__fake/default' && req.method === 'POST') { defaults = body; return sendJson(res, 200, { ok: true, defaults }); }
  if (url.pathname === '/__fake/reset' && req.method === 'POST') {
    requests = []; defaults = {}; failures.clear();
    for (const k of Object.keys(stats)) if (k !== 'inflight') stats[k] = 0;
    return sendJson(res, 200, { ok: true });
  }
  sendJson(res, 404, { error: 'no such control' });
}

server.keepAliveTimeout = 60_000;
server.requestTimeout = 0;
server.listen(PORT, HOST, () => {
  const { port } = server.address();
  const pf = opt('port-file', null);
  if (pf) { fs.writeFileSync(pf + '.tmp', String(port)); fs.renameSync(pf + '.tmp', pf); }
  if (!opt('quiet', false)) console.log(JSON.stringify({ ready: true, host: HOST, port, pid: process.pid, base_url: `http://${HOST}:${port}` }));
});
for (const s of ['SIGINT', 'SIGTERM']) process.on(s, () => process.exit(0));
