// The small parts that every page is made of.
import { useEffect, useRef, useState, type ButtonHTMLAttributes, type ReactNode } from "react";
import { ApiError } from "../api/client";
import { Icon, type IconName } from "../icons";
import { dated, exact, when } from "../model/numbers";
import { Text } from "../model/markdown";
import { useNowEvery } from "../state/clock";
import { adviceFor } from "../words";

type ButtonKind = "plain" | "go" | "ask" | "bad" | "quiet";
interface ButtonOptions extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: ButtonKind;
  icon?: IconName;
  shortcut?: string;
}

export function Button({ kind = "plain", icon, shortcut, children, className, ...rest }: ButtonOptions): ReactNode {
  return (
    <button type="button" className={`btn ${kind === "plain" ? "" : kind} ${className ?? ""}`} {...rest}>
      {icon ? <Icon name={icon} /> : null}
      {children}
      {shortcut ? <kbd>{shortcut}</kbd> : null}
    </button>
  );
}

export function LinkButton({
  to,
  icon,
  children,
  kind = "plain",
}: {
  to: string;
  icon?: IconName;
  children: ReactNode;
  kind?: ButtonKind;
}): ReactNode {
  return (
    <a className={`btn ${kind === "plain" ? "" : kind}`} href={to}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </a>
  );
}

export function IconButton({
  icon,
  label,
  ...rest
}: { icon: IconName; label: string } & ButtonHTMLAttributes<HTMLButtonElement>): ReactNode {
  return (
    <button type="button" className="icon-btn" aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}

export type Tone = "" | "ok" | "ask" | "bad" | "live";

export function Chip({
  tone = "",
  dot = false,
  icon,
  children,
  title,
}: {
  tone?: Tone;
  dot?: boolean;
  icon?: IconName;
  children: ReactNode;
  title?: string;
}): ReactNode {
  return (
    <span className={`chip ${tone}`} title={title}>
      {dot ? <span className="dot" /> : null}
      {icon ? <Icon name={icon} /> : null}
      {children}
    </span>
  );
}

export function Segments<T extends string>({
  label,
  value,
  options,
  onPick,
  className,
}: {
  label: string;
  value: T;
  options: readonly (readonly [T, ReactNode])[];
  onPick(value: T): void;
  className?: string;
}): ReactNode {
  return (
    <div className={`seg ${className ?? ""}`} role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => onPick(name)}>
          {text}
        </button>
      ))}
    </div>
  );
}

export function Meter({
  used,
  of,
  label,
  calm,
}: {
  used: number;
  of: number;
  label: string;
  calm?: boolean;
}): ReactNode {
  const share = of > 0 ? Math.min(1, Math.max(0, used / of)) : 0;
  const tone = calm ? "calm" : share >= 0.8 ? "hot" : "";
  return (
    <span
      className="meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(100 * share)}
    >
      <i className={tone} style={{ width: `${100 * share}%` }} />
    </span>
  );
}

/** A time as people say it, with the exact one when pointed at. */
export function Ago({ at, every = 10 }: { at: number | null | undefined; every?: number }): ReactNode {
  const now = useNowEvery(every);
  if (at === null || at === undefined) return <span className="dim">–</span>;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={exact(at)}>
      {when(at, now + every)}
    </time>
  );
}

export function At({ at }: { at: number }): ReactNode {
  const now = useNowEvery(60);
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={exact(at)}>
      {dated(at, now)}
    </time>
  );
}

/** Text of an agent or an app: what cannot be seen is shown. */
export const Said = Text;

export function CopyButton({
  text,
  label = "Copy",
  quiet = false,
}: {
  text: string;
  label?: string;
  quiet?: boolean;
}): ReactNode {
  const [state, setState] = useState<"" | "done" | "failed">("");
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState("done");
    } catch {
      setState("failed"); // not a secure context, or not allowed
    }
    timer.current = setTimeout(() => setState(""), 1600);
  };
  const name = state === "done" ? "Copied" : state === "failed" ? "Not allowed here" : label;
  if (quiet)
    return (
      <IconButton
        icon={state === "done" ? "tick" : "copy"}
        label={name}
        onClick={() => {
          void copy();
        }}
      />
    );
  return (
    <Button
      icon={state === "done" ? "tick" : "copy"}
      onClick={() => {
        void copy();
      }}
    >
      {name}
    </Button>
  );
}

/** A refusal: what the gateway said, what to do, and the id that its log has. */
export function Refusal({ error, onRetry }: { error: ApiError; onRetry?: () => void }): ReactNode {
  const advice = adviceFor(error.code);
  return (
    <div className="refusal" role="alert">
      <Icon name="warn" />
      <div className="grow">
        <p>
          <b>
            <Said text={error.detail} />
          </b>
        </p>
        {error.fields.map((field) => (
          <p key={field.field}>
            <code>{field.field}</code> <Said text={field.message} />
          </p>
        ))}
        {advice ? <p className="muted">{advice}</p> : null}
        <p className="dim small">
          <code>{error.code}</code>
          {error.requestId ? (
            <>
              {" "}
              request <code>{error.requestId}</code>
            </>
          ) : null}
        </p>
      </div>
      {onRetry ? <Button onClick={onRetry}>Try again</Button> : null}
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <Icon name={icon} />
      <p className="what">{title}</p>
      {children}
    </div>
  );
}

/** Nothing for a moment, then a still outline. */
export function Outline({ rows = 3 }: { rows?: number }): ReactNode {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (!shown) return null;
  return (
    <div className="outline-rows" aria-hidden="true">
      {Array.from({ length: rows }, (_, at) => (
        <span key={at} />
      ))}
    </div>
  );
}

export function Card({
  title,
  sub,
  aside,
  children,
  className,
  level = 2,
}: {
  title: string;
  sub?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  className?: string;
  level?: 2 | 3;
}): ReactNode {
  const Heading = level === 2 ? "h2" : "h3";
  return (
    <section className={`card ${className ?? ""}`} aria-label={title}>
      <header>
        <Heading>{title}</Heading>
        {sub ? <span className="sub">{sub}</span> : null}
        <span className="grow" />
        {aside}
      </header>
      {children}
    </section>
  );
}

export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  children: ReactNode;
}): ReactNode {
  return (
    <label className="field">
      <span className="name">{label}</span>
      {children}
      {error ? <span className="t-bad small">{error}</span> : hint ? <span className="dim small">{hint}</span> : null}
    </label>
  );
}

export function Select({
  label,
  value,
  options,
  onPick,
}: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onPick(value: string): void;
}): ReactNode {
  return (
    <label className="select">
      <span>{label}</span>
      <select value={value} onChange={(event) => onPick(event.target.value)}>
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A page's head: its title, what it says beside it, and its controls. */
export function PageHead({
  title,
  sub,
  children,
}: {
  title: string;
  sub?: ReactNode;
  children?: ReactNode;
}): ReactNode {
  return (
    <div className="top">
      <h1>{title}</h1>
      {sub ? <span className="sub">{sub}</span> : null}
      <span className="grow" />
      {children}
    </div>
  );
}
