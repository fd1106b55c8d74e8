#!/usr/bin/env node
// A loopback stand-in for OpenAI's Responses API, as Codex uses it. See stand_in.mjs for scripts.
import { newId, sendJson, serve, stepFor } from './stand_in.mjs';

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n');

// An answer is one item here: a message of the assistant, or a call of a tool.
function said(input) {
  return input.flatMap((item) => {
    if (item.type === 'function_call' || item.type === 'custom_tool_call') return [{ answer: true }];
    if (item.role === 'assistant') return [{ answer: true }];
    return item.role === 'user' ? [{ prompt: textOf(item.content) }] : [];
  });
}

// Newer models are told of their tools in the input. Tools may stand in a namespace, which the call
// has to name.
function toolNamed(body, name) {
  const told = body.input.filter((item) => item.type === 'additional_tools').flatMap((item) => item.tools);
  const all = [...(body.tools ?? []), ...told].flatMap((tool) =>
    tool.type === 'namespace'
      ? (tool.tools ?? []).map((inner) => ({ ...inner, namespace: tool.name }))
      : [tool]);
  return { tool: all.find((tool) => tool.name === name), names: all.map((tool) => tool.name ?? tool.type) };
}

const message = (text) => ({
  type: 'message', id: newId('msg'), role: 'assistant', status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});

function itemFor(step, body) {
  if (!step.tool) return message(step.text);
  const { tool, names } = toolNamed(body, step.tool.name);
  if (!tool) return message(`there is no tool ${step.tool.name} among: ${names.join(', ')}`);
  const call = { id: newId('fc'), call_id: newId('call'), name: tool.name, status: 'completed' };
  if (tool.namespace) call.namespace = tool.namespace;
  // A custom tool takes text, any other one an object.
  return tool.type === 'custom'
    ? { type: 'custom_tool_call', ...call, input: step.tool.input }
    : { type: 'function_call', ...call, arguments: JSON.stringify(step.tool.input) };
}

function respond(body, res) {
  const item = itemFor(stepFor(said(body.input)), body);
  const usage = {
    input_tokens: 1, input_tokens_details: { cached_tokens: 0 },
    output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2,
  };
  const response = {
    id: newId('resp'), object: 'response', created_at: 1, status: 'completed', model: body.model,
    output: [item], usage,
  };
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = (type, data) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  event('response.created', { response: { ...response, status: 'in_progress', output: [] } });
  event('response.output_item.added', { output_index: 0, item });
  if (item.type === 'message') {
    const delta = item.content[0].text;
    event('response.output_text.delta', { item_id: item.id, output_index: 0, content_index: 0, delta });
  }
  event('response.output_item.done', { output_index: 0, item });
  event('response.completed', { response });
  res.end();
}

serve((url, body, res) => {
  if (url.pathname.endsWith('/responses') && body?.input) return respond(body, res);
  // A WebSocket is asked for first; this answer makes Codex do without at once.
  if (url.pathname.endsWith('/responses')) return sendJson(res, 426, { error: { message: 'fake: no WebSocket' } });
  if (url.pathname.endsWith('/models')) return sendJson(res, 200, { object: 'list', data: [], models: [] });
  sendJson(res, 404, { error: { message: 'fake: not found' } });
});
