// A question of an agent, and its answer.
//
// What a person approves is shown whole, as it would run, with invisible characters made visible. A text that does not
// fit must be read to its end before it can be allowed. Keys act only after the card has been on screen for a while, so
// that a key that was meant for something else allows nothing.
import { useCallback, useEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import { ApiError, gatewayNow } from "../api/client";
import type { AskOption } from "../api/types";
import { Icon } from "../icons";
import { duration } from "../model/numbers";
import { commandOf, diffsOf, type ToolCall } from "../model/tools";
import { useNow } from "../state/clock";
import { lettersAreOn } from "../state/keep";
import { answerQuestion, type Answer } from "../state/questions";
import { sessionLink } from "../state/route";
import { ASKS } from "../words";
import { Button, Refusal, Said } from "./basic";
import { DiffView } from "./diff_view";

export const KEYS_WAIT_MS = 700;

export interface Asked {
  id: string;
  session: string;
  app: string | null;
  agent: string;
  title: string | null;
  kind: string | null;
  options: AskOption[];
  askedAt: number | null;
  expiresAt: number | null;
  tool: ToolCall;
  message: unknown;
  truncated: boolean;
}

export const headline = (asked: Asked): string => `${asked.agent} ${ASKS[asked.kind ?? ""] ?? "asks for permission"}`;

/** The text that is approved: the command, else the tool's whole input. */
export function approvedText(tool: ToolCall, title: string | null): string {
  const command = commandOf(tool);
  if (command !== null) return command;
  if (diffsOf(tool).length > 0) return "";
  if (tool.rawInput !== undefined && tool.rawInput !== null && Object.keys(tool.rawInput as object).length > 0)
    return JSON.stringify(tool.rawInput, null, 2);
  return tool.title || title || "The agent says nothing about it.";
}

export function TimeLeft({ asked }: { asked: Asked }): ReactNode {
  const now = useNow();
  if (asked.expiresAt === null) return null;
  const left = Math.max(0, asked.expiresAt - now);
  const whole = Math.max(1, asked.expiresAt - (asked.askedAt ?? now));
  const round = 47.1;
  return (
    <span className="left" title="Without an answer it is denied">
      <svg className="ring" viewBox="0 0 20 20" aria-hidden="true">
        <circle className="all" cx="10" cy="10" r="7.5" />
        <circle
          className="part"
          cx="10"
          cy="10"
          r="7.5"
          strokeDasharray={`${(round * Math.min(1, left / whole)).toFixed(1)} ${round}`}
          strokeLinecap="round"
        />
      </svg>
      {left > 0 ? `${left < 60 ? `0:${String(left).padStart(2, "0")}` : duration(left * 1000)} left` : "expired"}
    </span>
  );
}

/** Whether all of a text is, or was, on screen. */
function useRead(box: RefObject<HTMLElement>, text: string): boolean {
  const [read, setRead] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      setRead(true);
      return undefined;
    }
    const look = (): void => {
      if (element.scrollTop + element.clientHeight >= element.scrollHeight - 4) setRead(true);
    };
    setRead(false);
    look();
    element.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, [box, text]);
  return read;
}

/** Since when the card has been on screen without a break; null: it is not. */
function useOnScreen(card: RefObject<HTMLElement>): RefObject<number | null> {
  const since = useRef<number | null>(null);
  useEffect(() => {
    const element = card.current;
    if (element === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        const seen = entries[entries.length - 1]?.isIntersecting === true;
        if (!seen) since.current = null;
        else since.current ??= performance.now();
      },
      { threshold: 0.6 },
    );
    observer.observe(element);
    const hidden = (): void => {
      since.current = document.hidden ? null : performance.now();
    };
    document.addEventListener("visibilitychange", hidden);
    return () => {
      observer.disconnect();
      document.removeEventListener("visibilitychange", hidden);
    };
  }, [card]);
  return since;
}

const inField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

export interface Answering {
  busy: boolean;
  error: ApiError | null;
  give(answer: Answer): void;
}

export function useAnswer(asked: Asked): Answering {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const give = useCallback(
    (answer: Answer): void => {
      setBusy(true);
      setError(null);
      answerQuestion(asked.session, asked.app, asked.id, answer).catch((fault: unknown) => {
        setError(fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault)));
        setBusy(false);
      });
    },
    [asked.session, asked.app, asked.id],
  );
  return { busy, error, give };
}

/** A, D and S, where this card is the one that keys are for. */
function useAnswerKeys(
  card: RefObject<HTMLElement>,
  on: boolean,
  canAllow: boolean,
  always: AskOption | undefined,
  answering: Answering,
): void {
  const since = useOnScreen(card);
  useEffect(() => {
    if (!on) return undefined;
    const press = (event: KeyboardEvent): void => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.repeat ||
        inField(event.target) ||
        !lettersAreOn.get()
      )
        return;
      if (since.current === null || performance.now() - since.current < KEYS_WAIT_MS || answering.busy) return;
      const key = event.key.toLowerCase();
      if (key === "a" && canAllow) answering.give({ decision: "allow" });
      else if (key === "d") answering.give({ decision: "deny" });
      else if (key === "s" && canAllow && always) answering.give({ option_id: always.option_id });
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [on, canAllow, always, answering, since]);
}

function Approved({ asked, box }: { asked: Asked; box: RefObject<HTMLDivElement> }): ReactNode {
  const text = approvedText(asked.tool, asked.title);
  return (
    <div className="approved" ref={box} tabIndex={0} role="group" aria-label="What it wants to do">
      {text === "" ? null : (
        <pre>
          <code>
            <Said text={text} />
          </code>
        </pre>
      )}
      {diffsOf(asked.tool).map((content, at) => (
        <DiffView key={at} content={content} named />
      ))}
    </div>
  );
}

interface ActOptions {
  asked: Asked;
  answering: Answering;
  can: boolean;
  compact: boolean;
  always: AskOption | undefined;
  readAll(): void;
  aside: ReactNode;
}

/** The riskiest answer is last. */
function Acts({ asked, answering, can, compact, always, readAll, aside }: ActOptions): ReactNode {
  const { busy, give } = answering;
  return (
    <div className="acts">
      {can || asked.truncated ? (
        <Button kind="ask" shortcut="A" disabled={busy || !can} onClick={() => give({ decision: "allow" })}>
          Allow once
        </Button>
      ) : (
        <Button kind="ask" icon="down" onClick={readAll}>
          Read all
        </Button>
      )}
      <Button shortcut="D" disabled={busy} onClick={() => give({ decision: "deny" })}>
        Deny
      </Button>
      {compact ? (
        <a className="btn" href={sessionLink(asked.session, asked.app)}>
          Open
        </a>
      ) : null}
      {always && !compact ? (
        <Button
          className="last"
          shortcut="S"
          disabled={busy || !can}
          onClick={() => give({ option_id: always.option_id })}
        >
          <Said text={always.name === "Always" ? "Always allow" : always.name} />
        </Button>
      ) : null}
      <span className="grow" />
      {aside}
    </div>
  );
}

/** `keys`: this card answers to A, D and S. `compact`: on a page that shows other things, too. */
export function QuestionCard({
  asked,
  keys,
  compact = false,
  where,
}: {
  asked: Asked;
  keys: boolean;
  compact?: boolean;
  where?: ReactNode;
}): ReactNode {
  const card = useRef<HTMLElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const answering = useAnswer(asked);
  const read = useRead(box, approvedText(asked.tool, asked.title));
  const [showMessage, setShowMessage] = useState(false);
  const always = asked.options.find((option) => option.kind === "allow_always");
  const can = read && !asked.truncated;
  useAnswerKeys(card, keys, can, always, answering);
  const readAll = (): void => {
    box.current?.scrollTo({ top: box.current.scrollTop + box.current.clientHeight * 0.9 });
    box.current?.focus();
  };
  const aside = compact ? null : (
    <Button kind="quiet" onClick={() => setShowMessage(!showMessage)}>
      {showMessage ? "Hide the agent’s message" : "Show the agent’s message"}
    </Button>
  );
  return (
    <section
      className={`askbox ${compact ? "compact" : ""}`}
      ref={card}
      role="group"
      aria-label={headline(asked)}
      data-question={asked.id}
    >
      <div className="in">
        <h2>
          <Icon name="question" />
          <Said text={headline(asked)} />
          <TimeLeft asked={asked} />
        </h2>
        <Approved asked={asked} box={box} />
        {asked.truncated ? (
          <p className="t-bad">This is not all of it. What cannot be read whole cannot be allowed here.</p>
        ) : null}
        <p className="why">
          {where ??
            (asked.title && commandOf(asked.tool) ? (
              <>
                The agent calls it “<Said text={asked.title} />
                ”.{" "}
              </>
            ) : null)}
          {compact ? null : "Without an answer it is denied, and the turn goes on."}
        </p>
        {answering.error ? <Refusal error={answering.error} /> : null}
        {showMessage ? (
          <pre className="message" tabIndex={0}>
            <code>
              <Said text={JSON.stringify(asked.message, null, 2)} />
            </code>
          </pre>
        ) : null}
      </div>
      <Acts
        asked={asked}
        answering={answering}
        can={can}
        compact={compact}
        always={always}
        readAll={readAll}
        aside={aside}
      />
    </section>
  );
}

export const isExpired = (asked: Asked): boolean => asked.expiresAt !== null && asked.expiresAt <= gatewayNow();
