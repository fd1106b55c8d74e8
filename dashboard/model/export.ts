// A session as one Markdown text. Pure.
import type { SessionState } from "../api/types";
import type { Block, Folded } from "./fold";
import { diffsOf, objectOf, outputOf, type ToolCall } from "./tools";

/** A fence that the text itself cannot end. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((found) => found[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}

function toolText(tool: ToolCall): string {
  const parts = [`*${tool.kind}: ${tool.status}*`, fenced(objectOf(tool))];
  for (const diff of diffsOf(tool)) parts.push(`\`${diff.path}\``, fenced(diff.newText ?? "", ""));
  const output = outputOf(tool);
  if (output !== null && output !== "") parts.push(fenced(output));
  return parts.join("\n\n");
}

function blockText(block: Block): string {
  switch (block.kind) {
    case "turn":
      return `## Turn ${block.turn}\n\n${
        block.prompt === null
          ? "*The prompt is not kept.*"
          : block.prompt
              .split("\n")
              .map((line) => `> ${line}`)
              .join("\n")
      }`;
    case "text":
      return block.text;
    case "thought":
      return `*Thought:* ${block.text.replace(/\s+/g, " ")}`;
    case "tool":
      return toolText(block.tool);
    case "look":
      return block.tools.map(toolText).join("\n\n");
    case "ask":
      return `*Question:* ${fenced(objectOf(block.tool))}\n\n*${block.resolved === null ? "open" : `${block.resolved.decision} by ${block.resolved.by}`}*`;
    case "end":
      return `*The turn ended: ${block.end.state}${block.end.error ? `, ${block.end.error}` : ""}*`;
    case "gap":
      return `*Events ${block.from} to ${block.to} were removed.*`;
    case "note":
      return fenced(JSON.stringify({ [block.name]: block.data }, null, 2), "json");
  }
}

export function markdownOf(state: SessionState, folded: Folded): string {
  const head = [
    `# ${state.title ?? `Session ${state.session_id}`}`,
    `App ${state.app_name}, agent ${state.agent}${state.model ? `, ${state.model}` : ""}, session ${state.session_id}.`,
  ];
  return `${[...head, ...folded.blocks.map(blockText)].join("\n\n")}\n`;
}
