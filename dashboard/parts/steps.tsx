// The rows of a transcript: thoughts, tools, groups of them, and what is not known.
import { memo, useState, type ReactNode } from "react";
import { Icon, type IconName } from "../icons";
import { ansiSpans } from "../model/ansi";
import type { AskBlock, EndBlock, GapBlock, LookBlock, NoteBlock, ThoughtBlock } from "../model/fold";
import { count, duration } from "../model/numbers";
import { commandOf, diffsOf, exitCodeOf, fileDiff, objectOf, outputOf, toolMs, type ToolCall } from "../model/tools";
import { adviceFor } from "../words";
import { Markdown } from "../model/markdown";
import { Chip, Said } from "./basic";
import { Counts, DiffView } from "./diff_view";
import { approvedText } from "./question";

const OUTPUT_CHARACTERS_MAX = 60_000;

const LOOKS: Record<string, { icon: IconName; past: string; now: string }> = {
  read: { icon: "file", past: "Read", now: "Reads" },
  search: { icon: "search", past: "Searched", now: "Searches" },
  edit: { icon: "edit", past: "Edited", now: "Edits" },
  delete: { icon: "trash", past: "Deleted", now: "Deletes" },
  move: { icon: "edit", past: "Moved", now: "Moves" },
  execute: { icon: "terminal", past: "Ran", now: "Runs" },
  fetch: { icon: "globe", past: "Fetched", now: "Fetches" },
  think: { icon: "thought", past: "Thought", now: "Thinks" },
};

interface StepOptions {
  icon: IconName;
  name: string;
  object: ReactNode;
  aside?: ReactNode;
  time?: string;
  quiet?: boolean;
  open?: boolean;
  children?: () => ReactNode;
}

/** One line that opens. What is closed is not in the document. */
export function Step({
  icon,
  name,
  object,
  aside,
  time,
  quiet,
  open: first = false,
  children,
}: StepOptions): ReactNode {
  const [picked, setPicked] = useState<boolean | null>(null);
  const open = picked ?? first;
  const content = open && children ? children() : null;
  return (
    <div className={`step ${quiet ? "quiet" : ""}`}>
      <button type="button" className="h" aria-expanded={open} onClick={() => setPicked(!open)}>
        <Icon name={icon} />
        <span className="k">{name}</span>
        <span className="o cut">{object}</span>
        <span>{aside}</span>
        <span className="t">{time ?? ""}</span>
        <Icon name={open ? "down" : "right"} />
      </button>
      {content}
    </div>
  );
}

export const Terminal = memo(function Terminal({ text }: { text: string }): ReactNode {
  const cut = text.length > OUTPUT_CHARACTERS_MAX;
  const shown = cut ? text.slice(-OUTPUT_CHARACTERS_MAX) : text;
  return (
    <div className="term" tabIndex={0} role="region" aria-label="Output">
      {cut ? (
        <span className="t-dim">{`the first ${count(text.length - OUTPUT_CHARACTERS_MAX)} characters are in the raw events\n`}</span>
      ) : null}
      {ansiSpans(shown).map((span, at) => (
        <span key={at} className={span.className}>
          <Said text={span.text} />
        </span>
      ))}
    </div>
  );
});

function ToolBody({ tool }: { tool: ToolCall }): ReactNode {
  const diffs = diffsOf(tool);
  const output = outputOf(tool);
  const command = commandOf(tool);
  const others = tool.content.filter((content) => content.type === "other");
  const bare = diffs.length === 0 && output === null && others.length === 0;
  return (
    <>
      {command !== null && (command.includes("\n") || command.length > 70) ? (
        <pre className="whole" tabIndex={0}>
          <code>
            <Said text={command} />
          </code>
        </pre>
      ) : null}
      {diffs.map((content, at) => (
        <DiffView key={at} content={content} named={diffs.length > 1} />
      ))}
      {output !== null && output !== "" ? <Terminal text={output} /> : null}
      {others.map((content, at) => (
        <pre key={at} className="whole" tabIndex={0}>
          <code>
            <Said text={JSON.stringify(content.data, null, 2)} />
          </code>
        </pre>
      ))}
      {bare && command === null && tool.rawInput !== undefined ? (
        <pre className="whole" tabIndex={0}>
          <code>
            <Said text={JSON.stringify(tool.rawInput, null, 2)} />
          </code>
        </pre>
      ) : null}
      {bare && tool.rawOutput !== undefined ? (
        <pre className="whole" tabIndex={0}>
          <code>
            <Said text={JSON.stringify(tool.rawOutput, null, 2)} />
          </code>
        </pre>
      ) : null}
      {tool.title !== "" && tool.title !== objectOf(tool) && !(tool.kind in LOOKS) ? (
        <p className="tool-title dim small">
          The agent calls it “<Said text={tool.title} />
          ”.
        </p>
      ) : null}
    </>
  );
}

function ToolAside({ tool }: { tool: ToolCall }): ReactNode {
  if (tool.status === "failed")
    return (
      <Chip tone="bad" icon="cross">
        failed
      </Chip>
    );
  const diffs = diffsOf(tool);
  if (diffs.length > 0) {
    const sums = diffs.map(fileDiff);
    return (
      <Counts
        added={sums.reduce((sum, each) => sum + each.added, 0)}
        removed={sums.reduce((sum, each) => sum + each.removed, 0)}
      />
    );
  }
  const code = exitCodeOf(tool);
  if (code !== null) return <Chip tone={code === 0 ? "ok" : "bad"}>exit {code}</Chip>;
  return tool.status === "completed" ? null : (
    <Chip tone="live" icon="half">
      {tool.status === "pending" ? "pending" : "at work"}
    </Chip>
  );
}

const isShort = (tool: ToolCall): boolean => {
  const output = outputOf(tool);
  const changed = diffsOf(tool).reduce((sum, each) => sum + fileDiff(each).added + fileDiff(each).removed, 0);
  return (
    (changed > 0 && changed <= 24) || (tool.kind === "execute" && output !== null && output.split("\n").length <= 16)
  );
};

export function ToolStep({ tool }: { tool: ToolCall }): ReactNode {
  const look = LOOKS[tool.kind] ?? { icon: "tool" as const, past: "Used", now: "Uses" };
  const ended = tool.status === "completed" || tool.status === "failed";
  const ms = toolMs(tool);
  return (
    <Step
      icon={look.icon}
      name={ended ? look.past : look.now}
      object={<Said text={objectOf(tool)} />}
      open={isShort(tool)}
      aside={<ToolAside tool={tool} />}
      time={ms === null ? "" : duration(ms)}
    >
      {() => <ToolBody tool={tool} />}
    </Step>
  );
}

const times = (value: number, verb: string, one: string, many: string): string | null =>
  value === 0
    ? null
    : value === 1
      ? `${verb} ${one}`
      : value === 2 && one === "once"
        ? `${verb} twice`
        : `${verb} ${value} ${many}`;

export function LookStep({ block }: { block: LookBlock }): ReactNode {
  const [first] = block.tools;
  if (block.tools.length === 1 && first !== undefined) return <ToolStep tool={first} />;
  const reads = block.tools.filter((tool) => tool.kind === "read").length;
  const searches = block.tools.length - reads;
  const words = [times(reads, "read", "a file", "files"), times(searches, "searched", "once", "times")].filter(
    (word) => word !== null,
  );
  const ms = block.tools
    .map(toolMs)
    .reduce<number | null>((sum, each) => (each === null ? sum : (sum ?? 0) + each), null);
  return (
    <Step icon="search" name="Looked around" object={words.join(", ")} time={ms === null ? "" : duration(ms)}>
      {() => (
        <div className="inner">
          {block.tools.map((tool) => (
            <ToolStep key={tool.id} tool={tool} />
          ))}
        </div>
      )}
    </Step>
  );
}

export function ThoughtStep({ block }: { block: ThoughtBlock }): ReactNode {
  const { from, to } = block.offsets;
  const time = from !== null && to !== null && to > from ? duration(to - from) : "";
  return (
    <Step
      icon="thought"
      name={block.open ? "Thinks" : "Thought"}
      quiet
      object={<Said text={block.text.replace(/\s+/g, " ").slice(0, 300)} />}
      time={time}
    >
      {() => (
        <div className="md thought">
          <Markdown text={block.text} grows={block.open} />
        </div>
      )}
    </Step>
  );
}

const DECISIONS: Record<string, string> = { allow: "Allowed", deny: "Denied", cancelled: "Cancelled" };
const BY: Record<string, string> = {
  app: "by the app",
  owner: "by the owner",
  rule: "by the permission mode",
  expiry: "because no answer came",
  cancel: "with its turn",
};

/** A question that has been answered: who, what, when. */
export function AnsweredStep({ block, app }: { block: AskBlock; app: string }): ReactNode {
  const { resolved } = block;
  if (resolved === null) return null;
  const option = block.question.options.find((each) => each.option_id === resolved.optionId);
  const how =
    resolved.decision === "allow" && option?.kind === "allow_once"
      ? "Allowed once"
      : resolved.decision === "allow" && option?.kind === "allow_always"
        ? "Always allowed"
        : (DECISIONS[resolved.decision] ?? resolved.decision);
  const by = resolved.by === "app" ? `by ${app}` : (BY[resolved.by] ?? `by ${resolved.by}`);
  const took =
    resolved.at !== null && block.question.askedAt !== null ? Math.max(0, resolved.at - block.question.askedAt) : null;
  const text = approvedText(block.tool, block.question.title) || objectOf(block.tool);
  return (
    <Step
      icon={resolved.decision === "allow" ? "tick" : "bar"}
      name={`${how} ${by}`}
      object={<Said text={text} />}
      time={took === null ? "" : duration(took * 1000)}
    >
      {() => (
        <pre className="whole" tabIndex={0}>
          <code>
            <Said text={text} />
          </code>
        </pre>
      )}
    </Step>
  );
}

const ENDS = {
  failed: "The turn failed",
  cancelled: "The turn was cancelled",
  interrupted: "The turn was interrupted",
  done: "Done",
};

export function EndNote({ block }: { block: EndBlock }): ReactNode {
  const { end } = block;
  const advice = end.code === null ? null : adviceFor(end.code);
  return (
    <div className={`end-note ${end.state}`} role="note">
      <Icon name={end.state === "failed" ? "cross" : end.state === "cancelled" ? "bar" : "broken"} />
      <div className="grow">
        <p>
          <b>{ENDS[end.state]}</b>
          {end.error ? (
            <>
              : <Said text={end.error} />
            </>
          ) : null}
        </p>
        {advice && end.state !== "cancelled" ? <p className="muted">{advice}</p> : null}
        {end.stderr ? (
          <pre className="whole" tabIndex={0}>
            <code>
              <Said text={end.stderr} />
            </code>
          </pre>
        ) : null}
      </div>
      {end.code && end.state !== "cancelled" ? <code className="dim small">{end.code}</code> : null}
    </div>
  );
}

export function GapNote({ block }: { block: GapBlock }): ReactNode {
  return (
    <p className="gap-note dim">
      Events {count(block.from)} to {count(block.to)} were removed by retention (<code>journal_max_age_secs</code>,{" "}
      <code>journal_max_bytes_per_session</code>).
    </p>
  );
}

export function NoteStep({ block }: { block: NoteBlock }): ReactNode {
  return (
    <Step icon="list" name={block.name} quiet object="">
      {() => (
        <pre className="whole" tabIndex={0}>
          <code>
            <Said text={JSON.stringify(block.data, null, 2)} />
          </code>
        </pre>
      )}
    </Step>
  );
}
