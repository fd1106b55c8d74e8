// Every code that a caller can see has its sentence on what to do, and every colour its contrast.
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import { ADVICE } from "../../words";

const root = process.env["DASHBOARD_REPO"] ?? ".";

test("every code of openapi.yaml has a sentence", () => {
  const text = fs.readFileSync(`${root}/docs/openapi.yaml`, "utf8");
  const list = /\n {4}Code:\n[\s\S]*?enum:\n((?: {8}- \w+\n)+)/.exec(text)?.[1] ?? "";
  const codes = [...list.matchAll(/- (\w+)/g)].map((found) => found[1] ?? "");
  assert.ok(codes.length > 80);
  assert.deepEqual(
    codes.filter((code) => ADVICE[code] === undefined),
    [],
  );
});

type Colours = Record<string, [string, string]>;

function colours(): Colours {
  const text = fs.readFileSync(`${root}/dashboard/style/tokens.css`, "utf8");
  return Object.fromEntries(
    [...text.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map((found) => [
      found[1] ?? "",
      [found[2] ?? "", found[3] ?? ""],
    ]),
  );
}

function luminance(hex: string): number {
  const parts = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * (parts[0] ?? 0) + 0.7152 * (parts[1] ?? 0) + 0.0722 * (parts[2] ?? 0);
}

function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

const TEXTS: [string, string][] = [
  ["text", "panel"],
  ["text", "bg"],
  ["text-2", "panel"],
  ["text-2", "bg"],
  ["text-2", "sunken"],
  ["text-3", "panel"],
  ["text-3", "bg"],
  ["text-3", "sunken"],
  ["accent", "panel"],
  ["accent", "accent-soft"],
  ["ok", "panel"],
  ["ok", "ok-soft"],
  ["ask", "panel"],
  ["ask", "ask-soft"],
  ["bad", "panel"],
  ["bad", "bad-soft"],
  ["add", "add-soft"],
  ["del", "del-soft"],
  ["text", "add-soft"],
  ["text", "del-soft"],
  ["text-2", "ask-soft"],
  ["text-2", "bad-soft"],
];
const SHAPES: [string, string][] = [
  ["line-strong", "panel"],
  ...["s1", "s2", "s3", "s4", "s5", "s6"].map((name): [string, string] => [name, "panel"]),
];

test("each pair of colours has its contrast, in both themes", () => {
  const found = colours();
  for (const [pairs, least] of [
    [TEXTS, 4.5],
    [SHAPES, 3],
  ] as const) {
    for (const [front, back] of pairs) {
      for (const theme of [0, 1] as const) {
        const [a, b] = [found[front]?.[theme], found[back]?.[theme]];
        assert.ok(a !== undefined && b !== undefined, `${front} or ${back} is not a token`);
        assert.ok(
          contrast(a, b) >= least,
          `${front} on ${back}, ${theme === 0 ? "light" : "dark"}: ${contrast(a, b).toFixed(2)}`,
        );
      }
    }
  }
  for (const fill of ["accent-fill", "ask-fill"])
    for (const value of found[fill] ?? []) assert.ok(contrast("#ffffff", value) >= 4.5, fill);
});
