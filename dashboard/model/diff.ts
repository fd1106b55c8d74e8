// What changed between two texts: lines, with the words marked that differ inside a changed pair. Pure.
import { diffArrays, diffWordsWithSpace } from "diff";

export interface Part {
  text: string;
  marked: boolean;
}
export interface DiffLine {
  sign: " " | "+" | "-";
  before: number | null;
  after: number | null;
  parts: Part[];
}
export interface Hunk {
  lines: DiffLine[];
  begin: number;
}
export interface FileDiff {
  hunks: Hunk[];
  added: number;
  removed: number;
  isNew: boolean;
  isGone: boolean;
  coarse: boolean;
}

const LINES_MAX = 4000;
const CONTEXT_LINES = 3;
const WORDS_CHARACTERS_MAX = 400;

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
const plain = (text: string): Part[] => [{ text, marked: false }];

export function diffTexts(before: string | null, after: string | null): FileDiff {
  const old = linesOf(before ?? "");
  const now = linesOf(after ?? "");
  const coarse = old.length + now.length > LINES_MAX;
  const lines = coarse ? replaced(old, now) : compared(old, now);
  return {
    hunks: hunksOf(lines),
    added: lines.filter((line) => line.sign === "+").length,
    removed: lines.filter((line) => line.sign === "-").length,
    isNew: (before ?? "") === "" && now.length > 0,
    isGone: after === null || (now.length === 0 && old.length > 0),
    coarse,
  };
}

/** Too long to compare: all of the one is gone, all of the other is new. */
function replaced(old: string[], now: string[]): DiffLine[] {
  return [
    ...old.map((text, at): DiffLine => ({ sign: "-", before: at + 1, after: null, parts: plain(text) })),
    ...now.map((text, at): DiffLine => ({ sign: "+", before: null, after: at + 1, parts: plain(text) })),
  ];
}

function compared(old: string[], now: string[]): DiffLine[] {
  const lines: DiffLine[] = [];
  let before = 0;
  let after = 0;
  const changes = diffArrays(old, now);
  for (let at = 0; at < changes.length; ++at) {
    const change = changes[at];
    const next = changes[at + 1];
    if (change === undefined) continue;
    if (change.removed && next?.added) {
      lines.push(...pairs(change.value, next.value, before, after));
      before += change.value.length;
      after += next.value.length;
      ++at;
    } else if (change.removed) {
      for (const text of change.value) lines.push({ sign: "-", before: ++before, after: null, parts: plain(text) });
    } else if (change.added) {
      for (const text of change.value) lines.push({ sign: "+", before: null, after: ++after, parts: plain(text) });
    } else {
      for (const text of change.value) lines.push({ sign: " ", before: ++before, after: ++after, parts: plain(text) });
    }
  }
  return lines;
}

function pairs(old: string[], now: string[], before: number, after: number): DiffLine[] {
  const gone: DiffLine[] = [];
  const come: DiffLine[] = [];
  const both = old.length === now.length;
  old.forEach((text, at) => {
    const other = both ? now[at] : undefined;
    const words = other === undefined ? null : wordsOf(text, other);
    gone.push({ sign: "-", before: before + at + 1, after: null, parts: words?.[0] ?? plain(text) });
    if (other !== undefined)
      come.push({ sign: "+", before: null, after: after + at + 1, parts: words?.[1] ?? plain(other) });
  });
  if (!both)
    now.forEach((text, at) => come.push({ sign: "+", before: null, after: after + at + 1, parts: plain(text) }));
  return [...gone, ...come];
}

/** Null where the two lines have little in common: then marks would only be noise. */
function wordsOf(old: string, now: string): [Part[], Part[]] | null {
  if (old.length > WORDS_CHARACTERS_MAX || now.length > WORDS_CHARACTERS_MAX) return null;
  const gone: Part[] = [];
  const come: Part[] = [];
  let kept = 0;
  for (const change of diffWordsWithSpace(old, now)) {
    if (!change.added) gone.push({ text: change.value, marked: change.removed === true });
    if (!change.removed) come.push({ text: change.value, marked: change.added === true });
    if (!change.added && !change.removed) kept += change.value.trim().length;
  }
  return kept * 3 >= Math.min(old.trim().length, now.trim().length) ? [gone, come] : null;
}

function hunksOf(lines: DiffLine[]): Hunk[] {
  const hunks: Hunk[] = [];
  let open: Hunk | null = null;
  let quiet = 0;
  lines.forEach((line, at) => {
    if (line.sign === " ") {
      if (open === null) return;
      if (++quiet > 2 * CONTEXT_LINES) {
        open.lines.splice(open.lines.length - CONTEXT_LINES);
        open = null;
        return;
      }
    } else {
      quiet = 0;
      if (open === null) {
        const before = lines.slice(Math.max(0, at - CONTEXT_LINES), at).filter((each) => each.sign === " ");
        open = { lines: [...before], begin: at - before.length };
        hunks.push(open);
      }
    }
    open.lines.push(line);
  });
  if (open !== null && quiet > CONTEXT_LINES)
    (open as Hunk).lines.splice((open as Hunk).lines.length - (quiet - CONTEXT_LINES));
  return hunks;
}
