#!/usr/bin/env node
// Turns the tasks of a directory into jobs, and writes their answers beside them.
//
//   queue_worker.mjs [--once] DIRECTORY
//
// A task is a file NAME.json with the body of POST /run. It becomes NAME.job, which holds the job's id, and
// at last NAME.answer. The worker may be killed at any time: the files say how far each task is, and the
// gateway keeps the jobs. With --once it ends when all tasks have their answers.
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const { CLAWDFORGE_URL: url, CLAWDFORGE_TOKEN: token, AGENT: agent = 'claude' } = process.env;
const waitSecs = 20;

async function ask(method, path, body, headers = {}) {
  const answer = await fetch(url + path, {
    method,
    body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
  });
  return { status: answer.status, body: await answer.json() };
}

// Whole or not at all.
function write(path, text) {
  writeFileSync(`${path}.unfinished`, text);
  renameSync(`${path}.unfinished`, path);
}

async function submit(base) {
  const run = { agent, ...JSON.parse(readFileSync(`${base}.json`)) };
  const { status, body } = await ask('POST', '/jobs', { run, attempts: 3, meta: { task: base } });
  if (status === 429 || status >= 500) return; // the next round tries again
  if (status === 202) write(`${base}.job`, body.job_id);
  else write(`${base}.answer`, JSON.stringify({ state: 'refused', answer: body }));
  rmSync(`${base}.json`);
}

async function collect(base) {
  const id = readFileSync(`${base}.job`, 'utf8');
  let { status, body } = await ask('GET', `/jobs/${id}`, undefined, { Prefer: `wait=${waitSecs}` });
  if (status === 404) body = { state: 'lost', answer: body };
  else if (status !== 200 || ['queued', 'running'].includes(body.state)) return;
  write(`${base}.answer`, JSON.stringify(body));
  rmSync(`${base}.job`);
}

const isOnce = process.argv.includes('--once');
const spool = process.argv.at(-1);
for (;;) {
  const names = readdirSync(spool).sort();
  const bases = (suffix) => names.filter((name) => name.endsWith(suffix))
    .map((name) => join(spool, name.slice(0, -suffix.length)));
  const tasks = bases('.json');
  const jobs = bases('.job');
  if (isOnce && tasks.length + jobs.length === 0) break;
  try {
    for (const base of tasks) await submit(base);
    for (const base of jobs) await collect(base);
  } catch (lost) {
    console.error(`the gateway does not answer: ${lost.message}`);
  }
  await sleep(isOnce ? 100 : 2000);
}
