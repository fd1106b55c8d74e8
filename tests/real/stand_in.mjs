// What the stand-ins for the models' APIs of OpenAI and Google share: options, scripts, a dump of
// requests and a port file. No model, no network. Node >= 18, no dependencies.
//
// A prompt may carry a script, [[fake:[{...},{...}]]]: one step per answer of the model. The keys of
// a step: text, or tool {name, input}. After the last step, or without a script, the model answers
// with text.
import http from 'node:http';
import fs from 'node:fs';
import path from 'node:path';
import { randomBytes } from 'node:crypto';

const HOST = '127.0.0.1';
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const MARK = /\[\[fake:(\[[\s\S]*?\])\]\]/g;

export const newId = (prefix) => `${prefix}_${randomBytes(12).toString('hex')}`;

// The last script in `text`; none: null.
export function scriptIn(text) {
  const found = [...text.matchAll(MARK)];
  return found.length ? JSON.parse(found[found.length - 1][1]) : null;
}

// `said` is the conversation, oldest first: {prompt} for what the user wrote, {answer: true} for each
// answer of the model. The script is found in the newest prompt that carries one, and the step is the
// number of answers since: so a tool loop walks down the steps, and the server keeps no state.
export function stepFor(said) {
  let answers = 0;
  for (let i = said.length - 1; i >= 0; i--) {
    if (said[i].answer) { answers++; continue; }
    const script = scriptIn(said[i].prompt ?? '');
    if (script) return script[answers] ?? { text: 'done' };
  }
  return { text: 'fake reply' };
}

export function sendJson(res, status, body) {
  const bytes = Buffer.from(JSON.stringify(body));
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  res.end(bytes);
}

function option(name) {
  const at = process.argv.indexOf('--' + name);
  return at < 0 ? null : process.argv[at + 1];
}

// Calls answer(url, body, res) for each request. Options: --port-file F (the port is written there),
// --dump DIR (a file for each request with a body).
export function serve(answer) {
  const dump = option('dump');
  let seq = 0;
  if (dump) fs.mkdirSync(dump, { recursive: true });
  const server = http.createServer((req, res) => {
    const chunks = [];
    let bytes = 0;
    req.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) return req.destroy();
      chunks.push(chunk);
    });
    req.on('error', () => {});
    req.on('end', () => {
      const url = new URL(req.url, 'http://' + HOST);
      if (url.pathname === '/__fake/reset') { seq = 0; return sendJson(res, 200, { ok: true }); }
      try {
        const body = bytes ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : null;
        if (dump) {
          const file = path.join(dump, String(++seq).padStart(5, '0') + '.json');
          fs.writeFileSync(file, JSON.stringify({ method: req.method, path: req.url, body }, null, 1));
        }
        answer(url, body, res);
      } catch (fault) {
        process.stderr.write(`${req.method} ${req.url}: ${fault?.stack ?? fault}\n`);
        if (!res.headersSent) sendJson(res, 500, { error: { message: String(fault) } });
        else res.destroy();
      }
    });
  });
  server.listen(0, HOST, () => {
    const file = option('port-file');
    if (!file) return console.log(server.address().port);
    fs.writeFileSync(file + '.tmp', String(server.address().port));
    fs.renameSync(file + '.tmp', file);
  });
  // A client that wants to speak another protocol gets an ordinary answer.
  server.on('upgrade', (req, socket) => socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n'));
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0));
}
