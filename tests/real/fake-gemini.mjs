#!/usr/bin/env node
// A loopback stand-in for Google's Gemini API, as its command line uses it. See stand_in.mjs for
// scripts.
import { sendJson, serve, stepFor } from './stand_in.mjs';

function said(contents) {
  return contents.map((entry) => {
    if (entry.role === 'model') return { answer: true };
    return { prompt: (entry.parts ?? []).map((part) => part.text ?? '').join('\n') };
  });
}

// Gemini's program asks its model small questions of its own, for an answer in JSON by a schema:
// which model is fit for the prompt, and who speaks next. They get one answer that suits them all.
const OWN_QUESTION = JSON.stringify({
  complexity_reasoning: 'fake', complexity_score: 1, reasoning: 'fake', model_choice: 'flash',
  next_speaker: 'user',
});

function partFor(body) {
  if (body.generationConfig?.responseJsonSchema || body.generationConfig?.responseSchema) {
    return { text: OWN_QUESTION };
  }
  const step = stepFor(said(body.contents));
  if (!step.tool) return { text: step.text };
  const names = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map((tool) => tool.name);
  if (!names.includes(step.tool.name)) {
    return { text: `there is no tool ${step.tool.name} among: ${names.join(', ')}` };
  }
  return { functionCall: { name: step.tool.name, args: step.tool.input } };
}

serve((url, body, res) => {
  if (url.pathname.endsWith(':countTokens')) return sendJson(res, 200, { totalTokens: 1 });
  if (!body?.contents) return sendJson(res, 404, { error: { code: 404, message: 'fake: not found' } });
  const answer = {
    candidates: [{ content: { role: 'model', parts: [partFor(body)] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: 'fake',
  };
  if (!url.pathname.endsWith(':streamGenerateContent')) return sendJson(res, 200, answer);
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.end(`data: ${JSON.stringify(answer)}\r\n\r\n`);
});
