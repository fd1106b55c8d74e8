// Markdown of an agent as elements. Its text is hostile: there is no HTML anywhere, only a closed list of elements made
// from the lexer's tokens. What the lexer takes for HTML is shown as the text that it is; pictures are never loaded,
// because an address can carry data out.
import { Fragment, memo, type ReactNode } from "react";
import { lexer, type Token } from "marked";
import { reveal } from "./reveal";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const DEPTH_MAX = 24;

/** The address if it may be followed, else null. */
export function safeAddress(text: string): URL | null {
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** Where a link really leads, if its text looks like another address. */
export function otherHost(text: string, url: URL): string | null {
  const looks = /^(?:[a-z]+:\/\/)?([\w-]+(?:\.[\w-]+)+)/i.exec(text.trim());
  if (looks === null || url.protocol === "mailto:") return null;
  return looks[1]?.toLowerCase() === url.hostname.toLowerCase() ? null : url.hostname;
}

export function Text({ text }: { text: string }): ReactNode {
  const pieces = reveal(text);
  if (pieces.length === 1 && pieces[0]?.hidden === false) return text;
  return pieces.map((piece, at) =>
    piece.hidden ? (
      <span key={at} className="unseen" title="A character that cannot be seen">
        {piece.text}
      </span>
    ) : (
      <Fragment key={at}>{piece.text}</Fragment>
    ),
  );
}

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };

/** The lexer escapes some of its texts for HTML, which we never make. */
const unescaped = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] ?? entity);

function inline(tokens: Token[] | undefined, depth: number): ReactNode {
  if (tokens === undefined || depth > DEPTH_MAX) return null;
  return tokens.map((token, at) => <Fragment key={at}>{inlineToken(token, depth + 1)}</Fragment>);
}

function inlineToken(token: Token, depth: number): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens, depth)}</strong>;
    case "em":
      return <em>{inline(token.tokens, depth)}</em>;
    case "del":
      return <del>{inline(token.tokens, depth)}</del>;
    case "codespan":
      return (
        <code>
          <Text text={unescaped(token.text ?? "")} />
        </code>
      );
    case "br":
      return <br />;
    case "link":
      return <Link token={token} depth={depth} />;
    case "image":
      return (
        <span className="no-image">
          picture, not loaded: <Text text={token.text ?? ""} />{" "}
          <code>
            <Text text={token.href ?? ""} />
          </code>
        </span>
      );
    case "escape":
    case "text":
      return token.tokens ? inline(token.tokens, depth) : <Text text={unescaped(token.text ?? token.raw)} />;
    default:
      return <Text text={token.raw} />;
  }
}

function Link({ token, depth }: { token: Token; depth: number }): ReactNode {
  const url = safeAddress(token.href ?? "");
  const content = inline(token.tokens, depth);
  if (url === null)
    return (
      <span className="no-link" title="Not an address that may be followed">
        {content}{" "}
        <code>
          <Text text={token.href ?? ""} />
        </code>
      </span>
    );
  const host = otherHost(token.text ?? "", url);
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow" title={url.href}>
      {content}
      {host === null ? null : <span className="real-host"> ({host})</span>}
    </a>
  );
}

function blocks(tokens: Token[], depth: number): ReactNode {
  if (depth > DEPTH_MAX) return null;
  return tokens.map((token, at) => <Fragment key={at}>{blockToken(token, depth + 1)}</Fragment>);
}

function blockToken(token: Token, depth: number): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p>{inline(token.tokens, depth)}</p>;
    case "text":
      return token.tokens ? (
        <span>{inline(token.tokens, depth)}</span>
      ) : (
        <Text text={unescaped(token.text ?? token.raw)} />
      );
    // The page has its own headings: those of an agent are below them.
    case "heading":
      return (
        <p
          className={`h h${Math.min(token.depth ?? 3, 4)}`}
          role="heading"
          aria-level={Math.min((token.depth ?? 1) + 2, 6)}
        >
          {inline(token.tokens, depth)}
        </p>
      );
    case "code":
      return (
        <pre tabIndex={0}>
          <code>
            <Text text={token.text ?? ""} />
          </code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [], depth)}</blockquote>;
    case "list":
      return <List token={token} depth={depth} />;
    case "table":
      return <Table token={token} depth={depth} />;
    case "hr":
      return <hr />;
    default:
      return (
        <p className="raw">
          <Text text={token.raw.trimEnd()} />
        </p>
      );
  }
}

function List({ token, depth }: { token: Token; depth: number }): ReactNode {
  const items = (token.items ?? []).map((item, at) => (
    <li key={at} className={item.task ? "task" : undefined}>
      {item.task ? (
        <input
          type="checkbox"
          checked={item.checked === true}
          disabled
          aria-label={item.checked ? "done" : "open"}
          readOnly
        />
      ) : null}
      {blocks(item.tokens ?? [], depth)}
    </li>
  ));
  const start = typeof token.start === "number" ? token.start : 1;
  return token.ordered ? <ol start={start}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ token, depth }: { token: Token; depth: number }): ReactNode {
  const cells = (row: { tokens?: Token[] }[], Cell: "td" | "th"): ReactNode =>
    row.map((cell, at) => (
      <Cell key={at} className={token.align?.[at] === "right" ? "n" : undefined}>
        {inline(cell.tokens, depth)}
      </Cell>
    ));
  const header = Array.isArray(token.header) ? token.header : [];
  return (
    <div className="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{cells(header, "th")}</tr>
        </thead>
        <tbody>
          {(token.rows ?? []).map((row, at) => (
            <tr key={at}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function tokensOf(text: string): Token[] {
  try {
    return lexer(text, { gfm: true });
  } catch {
    return [{ type: "paragraph", raw: text, tokens: [{ type: "text", raw: text, text }] }];
  }
}

const Parsed = memo(function Parsed({ text }: { text: string }): ReactNode {
  return blocks(tokensOf(text), 0);
});

/** Where a text that still grows can be cut: what stands before is parsed once. Zero: nowhere. */
export function safeCut(text: string): number {
  let cut = 0;
  let fence: string | null = null;
  let at = 0;
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark !== undefined && fence === null) fence = mark;
    else if (mark !== undefined && fence !== null && mark.startsWith(fence)) fence = null;
    at += line.length + 1;
    // Only before a plain paragraph: a list or a quote may go on after a blank line.
    if (line.trim() === "" && fence === null && /^[^\s>*+\-\d|]/.test(text.slice(at, at + 1))) cut = at;
  }
  return Math.min(cut, text.length);
}

export function Markdown({ text, grows }: { text: string; grows: boolean }): ReactNode {
  const cut = grows ? safeCut(text) : 0;
  return cut === 0 ? (
    <Parsed text={text} />
  ) : (
    <>
      <Parsed text={text.slice(0, cut)} />
      <Parsed text={text.slice(cut)} />
    </>
  );
}
