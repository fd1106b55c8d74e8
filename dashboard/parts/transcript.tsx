// What was said and done, from the first turn to the last, following the end while the reader is there.
//
// Up to 400 blocks everything is in the document, and the browser's own search finds it. Longer ones are cut into pages
// of 40; a page that is far out of sight is an empty box of the same height.
import { memo, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { Block, Folded, TextBlock, TurnBlock } from "../model/fold";
import { Markdown } from "../model/markdown";
import { bytes, clock, count, duration, money } from "../model/numbers";
import { Icon } from "../icons";
import { useNow } from "../state/clock";
import { Button, Said } from "./basic";
import { QuestionCard, type Asked } from "./question";
import { AnsweredStep, EndNote, GapNote, LookStep, NoteStep, ThoughtStep, ToolStep } from "./steps";

const MOUNTED_BLOCKS_MAX = 400;
const PAGE_BLOCKS = 40;
const NEAR_END_PX = 48;
const GUESSED_BLOCK_PX = 64;

export interface Context {
  app: string;
  agent: string;
  session: string;
  actAs: string | null;
  prompts: Record<string, string>;
  keyedAsk: string | null;
}

function TurnHead({ block, context }: { block: TurnBlock; context: Context }): ReactNode {
  const typed = context.prompts[String(block.turn)];
  const prompt = block.prompt ?? typed ?? null;
  return (
    <>
      <h2 className="turn-line" id={`turn-${block.turn}`}>
        <b>Turn {block.turn}</b>
        {block.at === null ? null : (
          <time dateTime={new Date(block.at * 1000).toISOString()}>{clock(block.at, true)}</time>
        )}
        {block.end === null ? <SoFar at={block.at} /> : <span>{duration(block.end.durationMs)}</span>}
        {block.end?.cost ? <span>{money(block.end.cost)}</span> : null}
      </h2>
      {prompt === null ? (
        <p className="gap-note dim">
          The prompt is not kept. <code>keep_prompts</code> changes that.
        </p>
      ) : (
        <article className="prompt" aria-label="Prompt">
          <div className="who">
            <b>{block.by === "owner" ? `owner, as ${context.app}` : context.app}</b>
            {block.at === null ? null : clock(block.at, true)}
            {block.prompt === null ? <span className="dim">only in this tab</span> : null}
          </div>
          <div className="md">
            <Markdown text={prompt} grows={false} />
          </div>
          {block.files.map((file) => (
            <span key={file.name} className="att">
              <Icon name="clip" />
              <b>
                <Said text={file.name} />
              </b>
              {file.size === null ? null : bytes(file.size)}
            </span>
          ))}
        </article>
      )}
    </>
  );
}

function SoFar({ at }: { at: number | null }): ReactNode {
  const now = useNow();
  return at === null ? <span>runs</span> : <span>{duration(Math.max(1, now - at) * 1000)} so far</span>;
}

const Spoken = memo(function Spoken({ text, open }: { text: string; open: boolean }): ReactNode {
  return (
    <div className={`say md ${open ? "grows" : ""}`}>
      <Markdown text={text} grows={open} />
    </div>
  );
});

function askedOf(block: Block & { kind: "ask" }, context: Context): Asked {
  const { question } = block;
  return {
    id: question.id,
    session: context.session,
    app: context.actAs,
    agent: context.agent,
    title: question.title,
    kind: question.toolKind,
    options: question.options,
    askedAt: question.askedAt,
    expiresAt: question.expiresAt,
    tool: block.tool,
    message: block.message,
    truncated: false,
  };
}

function drawn(block: Block, context: Context, runs: boolean): ReactNode {
  switch (block.kind) {
    case "turn":
      return <TurnHead block={block} context={context} />;
    case "text":
      return <Spoken text={block.text} open={block.open && runs} />;
    case "thought":
      return <ThoughtStep block={block} />;
    case "tool":
      return <ToolStep tool={block.tool} />;
    case "look":
      return <LookStep block={block} />;
    case "ask":
      return block.resolved === null ? (
        <QuestionCard asked={askedOf(block, context)} keys={context.keyedAsk === block.question.id} />
      ) : (
        <AnsweredStep block={block} app={context.app} />
      );
    case "end":
      return <EndNote block={block} />;
    case "gap":
      return <GapNote block={block} />;
    case "note":
      return <NoteStep block={block} />;
  }
}

interface RowOptions {
  block: Block;
  version: number;
  context: Context;
  runs: boolean;
}

const STEPS = new Set(["thought", "tool", "look", "note"]);

/** Drawn again only when its own block has changed. */
const Row = memo(
  function Row({ block, context, runs }: RowOptions): ReactNode {
    return (
      <div
        className={`row-${block.kind} ${STEPS.has(block.kind) ? "is-step" : ""}`}
        data-first={block.firstId ?? undefined}
      >
        {drawn(block, context, runs)}
      </div>
    );
  },
  (before, after) =>
    before.block === after.block &&
    before.version === after.version &&
    before.context === after.context &&
    before.runs === after.runs,
);

function Rows({ blocks, context, running }: { blocks: Block[]; context: Context; running: number }): ReactNode {
  return blocks.map((block) => (
    <Row key={block.key} block={block} version={block.version} context={context} runs={block.turn === running} />
  ));
}

function Page({
  blocks,
  context,
  running,
  last,
}: {
  blocks: Block[];
  context: Context;
  running: number;
  last: boolean;
}): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(last);
  const height = useRef(blocks.length * GUESSED_BLOCK_PX);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries[entries.length - 1];
        if (entry === undefined) return;
        if (!entry.isIntersecting && element.childElementCount > 0) height.current = element.offsetHeight;
        setNear(entry.isIntersecting);
      },
      { rootMargin: "1400px 0px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const mounted = near || last;
  return (
    <div ref={box} className="script-page" style={mounted ? {} : { height: height.current }}>
      {mounted ? <Rows blocks={blocks} context={context} running={running} /> : null}
    </div>
  );
}

function pagesOf(blocks: Block[]): Block[][] {
  const pages: Block[][] = [];
  for (let at = 0; at < blocks.length; at += PAGE_BLOCKS) pages.push(blocks.slice(at, at + PAGE_BLOCKS));
  return pages;
}

const distanceToEnd = (): number => document.documentElement.scrollHeight - window.innerHeight - window.scrollY;
export const toEnd = (): void => window.scrollTo({ top: document.documentElement.scrollHeight });

/** Stays at the end while the reader is there, and counts what comes while the reader is not. */
function useFollowing(version: number, length: number): number {
  const follows = useRef(true);
  const seen = useRef(length);
  const [news, setNews] = useState(0);
  useEffect(() => {
    const look = (): void => {
      follows.current = distanceToEnd() <= NEAR_END_PX;
      if (follows.current) setNews(0);
    };
    window.addEventListener("scroll", look, { passive: true });
    return () => window.removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    if (follows.current) {
      toEnd();
      seen.current = length;
    } else if (length > seen.current) {
      setNews(length - seen.current);
    }
  }, [version, length]);
  return news;
}

/** Finished texts, for those who listen: one sentence at a time would be too many. */
function Announced({ blocks }: { blocks: Block[] }): ReactNode {
  const last = [...blocks.slice(-6)]
    .reverse()
    .find((block): block is TextBlock => block.kind === "text" && !block.open);
  const asks = blocks.slice(-6).some((block) => block.kind === "ask" && block.resolved === null);
  return (
    <>
      <p className="vh" aria-live="polite">
        {last?.text.slice(-400) ?? ""}
      </p>
      <p className="vh" role="alert">
        {asks ? "The agent asks a question." : ""}
      </p>
    </>
  );
}

export function Transcript({
  folded,
  version,
  context,
}: {
  folded: Folded;
  version: number;
  context: Context;
}): ReactNode {
  const { blocks, running } = folded;
  const news = useFollowing(version, blocks.length);
  const paged = blocks.length > MOUNTED_BLOCKS_MAX;
  const pages = paged ? pagesOf(blocks) : [];
  return (
    <>
      <div className="script" role="log" aria-label="Transcript" aria-live="off">
        {paged ? (
          <p className="gap-note dim">
            A long session: the browser’s search finds what is near. <kbd>/</kbd> searches all {count(blocks.length)}.
          </p>
        ) : null}
        {paged ? (
          pages.map((page, at) => (
            <Page key={page[0]?.key} blocks={page} context={context} running={running} last={at >= pages.length - 1} />
          ))
        ) : (
          <Rows blocks={blocks} context={context} running={running} />
        )}
      </div>
      <Announced blocks={blocks} />
      {news > 0 ? (
        <div className="jump">
          <Button kind="go" icon="down" onClick={toEnd}>
            {count(news)} new below
          </Button>
        </div>
      ) : null}
    </>
  );
}
