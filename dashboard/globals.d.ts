// What the page uses of Debian's marked, which has no types of its own: the lexer alone.
declare module "marked" {
  export interface Token {
    type: string;
    raw: string;
    text?: string;
    href?: string;
    depth?: number;
    ordered?: boolean;
    start?: number | "";
    align?: (string | null)[];
    header?: { tokens?: Token[] }[];
    rows?: { tokens?: Token[] }[][];
    items?: { task?: boolean; checked?: boolean; tokens?: Token[] }[];
    tokens?: Token[];
  }
  export function lexer(text: string, options?: { gfm?: boolean }): Token[];
}
