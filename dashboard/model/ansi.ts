// Colours out of a terminal's output. Only SGR is understood; every other escape is shown. Pure.

export interface Span {
  text: string;
  className: string;
}

const COLOURS = ["k", "r", "g", "y", "b", "m", "c", "w"];
const SGR = /\u001b\[([0-9;]*)m/g;

export function ansiSpans(text: string): Span[] {
  const spans: Span[] = [];
  let style = new Set<string>();
  let begin = 0;
  const put = (piece: string): void => {
    if (piece !== "") spans.push({ text: shown(piece), className: [...style].join(" ") });
  };
  for (const found of text.matchAll(SGR)) {
    put(text.slice(begin, found.index));
    style = styled(style, (found[1] ?? "").split(";").map(Number));
    begin = found.index + found[0].length;
  }
  put(text.slice(begin));
  return spans;
}

/** Carriage returns draw over their line, as in a terminal; other controls get a picture of themselves. */
function shown(piece: string): string {
  const lines = piece
    .replace(/\r+\n/g, "\n")
    .split("\n")
    .map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1));
  return lines
    .join("\n")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421");
}

function styled(before: Set<string>, codes: number[]): Set<string> {
  const style = new Set(before);
  const colour = (name: string): void => {
    for (const old of [...style]) if (old.startsWith("t-c-")) style.delete(old);
    if (name !== "") style.add(`t-c-${name}`);
  };
  for (let at = 0; at < codes.length; ++at) {
    const code = codes[at] ?? 0;
    if (code === 0) style.clear();
    else if (code === 1) style.add("t-bold");
    else if (code === 2) style.add("t-dim");
    else if (code === 3) style.add("t-italic");
    else if (code === 4) style.add("t-under");
    else if (code === 22) {
      style.delete("t-bold");
      style.delete("t-dim");
    } else if (code === 23) style.delete("t-italic");
    else if (code === 24) style.delete("t-under");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour(COLOURS[code % 10] ?? "");
    else if (code === 39) colour("");
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4; // a colour of its own: not shown
  }
  return style;
}
