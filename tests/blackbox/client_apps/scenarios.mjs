// What an app does with the TypeScript client; scenarios.py does the same with the Python client. Prints JSON.
//
//   node scenarios.mjs CLIENT NAME [JSON]
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const { ApiError, Client, ConnectionFailed, newKey, textOf, verifyWebhook, WebhookRefused } =
  await import(pathToFileURL(process.argv[2]).href)
const forge = new Client()

async function all(events) {
  const got = []
  for await (const event of events) got.push(event)
  return got
}

async function refusal(call) {
  try {
    await call()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { status: error.status, code: error.code, retry_after: error.retryAfter, has_id: error.requestId !== '' }
  }
  return null
}

const scenarios = {
  async basics() {
    return {
      version: (await forge.health()).version,
      ready: await forge.isReady(),
      name: (await forge.whoami()).name,
      has_demo: (await forge.agents()).some((agent) => agent.name === 'demo'),
      workspaces: await forge.workspaces(),
      asks: (await forge.usage({ by: ['agent'] })).totals.asks,
      steps: (await forge.usage({ step: 3600 })).step,
    }
  },

  async runs() {
    const idempotencyKey = newKey()
    const request = { prompt: 'Hello', agent: 'demo', include: ['usage'] }
    const first = await forge.run(request, { idempotencyKey })
    const again = await forge.run(request, { idempotencyKey })
    const listed = (await all(forge.runs())).map((run) => run.run_id)
    return {
      result: first.result, is_same: first.run_id === again.run_id, count: listed.length,
      state: (await forge.getRun(listed[0])).state, cancelled: await forge.cancelRun(listed[0]),
    }
  },

  async pages() {
    return { count: (await all(forge.jobs())).length, queued: (await all(forge.jobs({ state: 'queued' }))).length }
  },

  async refusals() {
    const other = new Client({ token: 'cf_wrong' })
    return {
      token: await refusal(() => other.whoami()),
      agent: await refusal(() => forge.run({ prompt: 'x', agent: 'no-such' })),
      session: await refusal(() => forge.session('01a1e2bf-6b42-7000-b63e-519fb92cb2c1')),
      rate: await refusal(async () => {
        for (let i = 0; i < 3; i += 1) await forge.run({ prompt: 'x', agent: 'demo' })
      }),
    }
  },

  async session() {
    const made = await forge.createSession({ agent: 'demo', permission_mode: 'ask', meta: { ticket: 7 } })
    const { file_token: token } = await forge.upload(new Blob(['Hello file']), { name: 'notes.txt', ttlSecs: 600 })
    const done = await made.turn({ prompt: 'Remember the word heron.', files: [token] })
    const text = (await all(made.stream({ prompt: 'What do you remember?' }))).map(textOf).join('')
    const listed = (await made.files()).map((file) => file.path)
    const content = await (await made.download(listed[0])).text()
    const decisions = []
    for await (const event of made.stream({ prompt: 'permission edit' })) {
      if (event.event === 'permission') {
        const [asked] = await made.permissions()
        await made.answerPermission(asked.id, { decision: 'allow' })
      } else if (event.event === 'permission_resolved') {
        decisions.push([event.data.decision, event.data.by])
      }
    }
    const later = await forge.session(made.id)
    const failed = await refusal(() => all(later.stream({ prompt: 'crash' })))
    const state = await later.state()
    const told = (await made.close()) ? (await all(later.events())).map((event) => event.event) : []
    return {
      turn: done.turn_index, text, content, decisions, failed, meta: state.meta, turns: state.turn_count,
      closings: told.filter((name) => name === 'done' || name === 'failed').length, cancelled: null,
      closed_again: await made.close(), after: await refusal(() => made.turn({ prompt: 'x' })),
      listed: (await all(forge.sessions({ includeClosed: true }))).some((row) => row.session_id === made.id),
    }
  },

  async workspace() {
    const made = await forge.createSession({ agent: 'demo', workspace: 'tree' })
    const replaced = []
    for (const text of ['one\n', 'two\n']) replaced.push(await made.putFile('notes.txt', new Blob([text])))
    const changes = await made.changes()
    const diff = await (await made.diff()).text()
    const archive = await (await made.archive()).arrayBuffer()
    const commit = await made.commit('Notes')
    await made.close()
    return {
      replaced, changed: changes.files.map((file) => file.path), diff, archive: archive.byteLength, commit: commit.length,
    }
  },

  async cancelled() {
    const made = await forge.createSession({ agent: 'demo' })
    let cancelled = null
    let reason
    for await (const event of made.stream({ prompt: 'slow' })) {
      if (textOf(event) && cancelled === null) cancelled = await made.cancel()
      if (event.event === 'done') reason = event.data.stop_reason
    }
    await made.close()
    return { cancelled, reason }
  },

  // Streams through a connection that is cut now and then.
  async resumed(settings) {
    const made = await forge.session(settings.session_id)
    const events = await all(made.stream({ prompt: settings.prompt }))
    return { ids: events.map((event) => event.id), text: events.map(textOf).join(''), last: events.at(-1).event }
  },

  // The gateway is killed in the middle; the marker says when.
  async interrupted(settings) {
    const made = await forge.session(settings.session_id)
    const seen = []
    const failed = await refusal(async () => {
      for await (const event of made.stream({ prompt: 'slow 100' })) {
        seen.push(event.id)
        writeFileSync(settings.marker, '')
      }
    })
    return { failed, is_one_apart: seen.every((id, index) => id === index + 1) }
  },

  async jobs() {
    const request = { run: { prompt: 'Hello', agent: 'demo' }, meta: { order: 7 } }
    const job = await forge.submitJob(request, { idempotencyKey: 'the-same' })
    const again = await forge.submitJob(request, { idempotencyKey: 'the-same' })
    const ended = await forge.waitForJob(job, { timeoutSecs: 60 })
    const states = (await all(forge.jobEvents(job))).filter((event) => event.event === 'state')
    const later = await forge.submitJob({
      run: { prompt: 'x', agent: 'demo' }, run_at: Math.floor(Date.now() / 1000) + 3600,
    })
    return {
      is_same: job === again, state: ended.state, result: ended.answer.result, meta: ended.meta,
      states: states.map((event) => event.data.state), cancelled: await forge.cancelJob(later),
      cancelled_again: await forge.cancelJob(later), count: (await all(forge.jobs())).length,
    }
  },

  async webhook(call) {
    try {
      return { type: (await verifyWebhook(call.secret, call.headers, call.body)).type }
    } catch (error) {
      if (!(error instanceof WebhookRefused)) throw error
      return { refused: error.message }
    }
  },

  async absent() {
    try {
      await new Client({ url: process.env.ABSENT_URL, retries: 1 }).whoami()
    } catch (error) {
      return { failed: error instanceof ConnectionFailed }
    }
  },
}

const [name, settings] = process.argv.slice(3)
console.log(JSON.stringify(await scenarios[name](settings ? JSON.parse(settings) : undefined)))
