#!/usr/bin/env node
// Receives clawdforge's webhooks: checks each signature and prints each event once.
//
//   WEBHOOK_SECRET=whsec_... node webhook-receiver.mjs [port]
//
// Node's own modules are all it needs. `verify` is the part to copy.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const TOLERANCE_SECONDS = 300 // an older call may be one that somebody has recorded
const BODY_BYTES_MAX = 1024 * 1024

// The event in `body` (a Buffer), if the gateway that knows `secret` has signed it; else it throws.
export function verify(secret, headers, body, now = Date.now() / 1000) {
  const id = headers['webhook-id'] ?? ''
  const timestamp = headers['webhook-timestamp'] ?? ''
  if (!id || !/^[0-9]{1,12}$/.test(timestamp)) throw new Error('webhook-id or webhook-timestamp is missing')
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) throw new Error('the call is too old')
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  // While a secret is being replaced there may be several signatures, with blanks in between.
  for (const signature of (headers['webhook-signature'] ?? '').split(' ')) {
    const [version, value = ''] = signature.split(',')
    const given = Buffer.from(value, 'base64')
    if (version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)) {
      return JSON.parse(body.toString('utf8'))
    }
  }
  throw new Error('the signature is wrong')
}

const secret = process.env.WEBHOOK_SECRET ?? ''
if (!secret.startsWith('whsec_')) {
  console.error('Set WEBHOOK_SECRET to the secret that the gateway has shown.')
  process.exit(1)
}
const seen = new Set() // an event may come more than once: its id tells

const server = createServer((request, response) => {
  const answer = (status) => response.writeHead(status, { 'Content-Length': 0 }).end()
  if (request.method !== 'POST') return answer(405)
  const pieces = []
  let bytes = 0
  request.on('data', (piece) => {
    bytes += piece.length
    if (bytes <= BODY_BYTES_MAX) pieces.push(piece)
  })
  request.on('end', () => {
    if (bytes > BODY_BYTES_MAX) return answer(413)
    let event
    try {
      event = verify(secret, request.headers, Buffer.concat(pieces))
    } catch (error) {
      console.error(`refused: ${error.message}`)
      return answer(401)
    }
    const id = request.headers['webhook-id']
    if (!seen.has(id)) {
      console.log(JSON.stringify({ id, ...event }))
      seen.add(id)
      if (seen.size > 10_000) seen.delete(seen.values().next().value)
    }
    return answer(204) // anything but 2xx, and it comes again
  })
})
server.listen(Number(process.argv[2] ?? 9000), '127.0.0.1', () => {
  console.error(`listening on http://127.0.0.1:${server.address().port}`)
})
