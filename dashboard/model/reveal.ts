// Makes visible what a reader could not see: characters without a shape, and those that turn the direction of text and
// can make a command read as another one. Pure.

export interface Piece {
  text: string;
  hidden: boolean;
}

// Controls but tab and line feed; soft hyphen; marks, embeddings and isolates of direction; spaces of no or odd width;
// fillers; variation selectors; tags.
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb]" +
    "|[\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
  "gu",
);

export const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

export function reveal(text: string): Piece[] {
  const pieces: Piece[] = [];
  let begin = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > begin) pieces.push({ text: text.slice(begin, found.index), hidden: false });
    pieces.push({ text: codePoint(found[0]), hidden: true });
    begin = found.index + found[0].length;
  }
  if (begin < text.length) pieces.push({ text: text.slice(begin), hidden: false });
  return pieces;
}

export const hasHidden = (text: string): boolean => text.search(HIDDEN) >= 0;

/** As plain text, for titles and names. */
export const revealed = (text: string): string =>
  reveal(text)
    .map((piece) => (piece.hidden ? `[${piece.text}]` : piece.text))
    .join("");
