import assert from "node:assert/strict";
import test from "node:test";
import { SseParser } from "../../api/sse";
import { ansiSpans } from "../../model/ansi";
import { diffTexts } from "../../model/diff";
import { otherHost, safeAddress, safeCut } from "../../model/markdown";
import { gauge, parseMetrics, quantile, requestsOf } from "../../model/metrics";
import { bytes, duration, money, percent, short, tokens, when } from "../../model/numbers";
import { largest, linePath, logTicks, sparkPaths, ticksOf, timeTicks } from "../../model/plots";
import { hasHidden, reveal, revealed } from "../../model/reveal";
import { codeFor } from "../../model/snippets";

test("figures as people read them", () => {
  assert.deepEqual([950, 1900, 41_800_000, 999_999].map(tokens), ["950", "1.9 k", "41.8 M", "1 M"]);
  assert.deepEqual(short(null), ["–", ""]);
  assert.deepEqual([0, 0.004, 0.02, 63.18, 1234.5, null].map(money), [
    "$0.00",
    "< $0.01",
    "$0.02",
    "$63.18",
    "$1,234.50",
    "–",
  ]);
  assert.deepEqual([0.6, 42, 3100, 41_000, 127_000, 4_320_000, 532_800_000].map(duration), [
    "0.6 ms",
    "42 ms",
    "3.1 s",
    "41 s",
    "2:07",
    "1 h 12 m",
    "6 d 4 h",
  ]);
  assert.deepEqual([12, 1200, 812e6].map(bytes), ["12 B", "1.2 KB", "812 MB"]);
  assert.equal(percent(4, 1000), "0.4 %");
  assert.deepEqual([when(100, 103), when(100, 140), when(100, 400)], ["now", "40 s ago", "5 m ago"]);
});

test("what cannot be seen is made visible", () => {
  assert.equal(revealed("a\u202eb\u200bc"), "a[U+202E]b[U+200B]c");
  assert.equal(hasHidden("plain\ttext\nand — signs 字"), false);
  assert.deepEqual(reveal("x"), [{ text: "x", hidden: false }]);
  assert.equal(hasHidden("\u{e0041}"), true);
});

test("events out of pieces, wherever they are cut", () => {
  const text = ':\n\nid: 1\nevent: update\nat: 5\ndata: {"a":\ndata: 1}\n\nid: 2\r\nevent: done\r\ndata: x\r\n\r\n';
  for (let size = 1; size < text.length; ++size) {
    const parser = new SseParser();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.take(text.slice(at, at + size)));
    assert.deepEqual(
      found.map((event) => [event.id, event.event, event.data]),
      [
        [null, ":", ""],
        ["1", "update", '{"a":\n1}'],
        ["2", "done", "x"],
      ],
    );
    assert.equal(found[1]?.fields["at"], "5");
  }
});

test("only colours of a terminal are understood; other escapes are shown", () => {
  assert.deepEqual(ansiSpans("a\u001b[1;32mb\u001b[0mc"), [
    { text: "a", className: "" },
    { text: "b", className: "t-bold t-c-g" },
    { text: "c", className: "" },
  ]);
  assert.match(ansiSpans("\u001b[2J\u001b]8;;http://x\u0007")[0]?.text ?? "", /␛\[2J␛\]8/);
  assert.equal(ansiSpans("10 %\r100 %\n")[0]?.text, "100 %\n");
});

test("a diff has its lines, its numbers and the words that changed", () => {
  const diff = diffTexts("a\nthe old word here\nb\n", "a\nthe new word here\nb\n");
  assert.deepEqual([diff.added, diff.removed, diff.hunks.length], [1, 1, 1]);
  const marked = diff.hunks[0]?.lines.flatMap((line) =>
    line.parts.filter((part) => part.marked).map((part) => part.text),
  );
  assert.deepEqual(marked, ["old", "new"]);
  assert.deepEqual(
    diff.hunks[0]?.lines.map((line) => [line.sign, line.before, line.after]),
    [
      [" ", 1, 1],
      ["-", 2, null],
      ["+", null, 2],
      [" ", 3, 3],
    ],
  );
});

test("far changes are hunks of their own, with three lines around them", () => {
  const lines = Array.from({ length: 60 }, (_, at) => `line ${at}`);
  const after = lines.map((line, at) => (at === 10 || at === 40 ? `${line}!` : line));
  const diff = diffTexts(lines.join("\n"), after.join("\n"));
  assert.deepEqual(
    diff.hunks.map((hunk) => hunk.lines.length),
    [8, 8],
  );
});

test("new, deleted and huge files", () => {
  assert.equal(diffTexts(null, "a\n").isNew, true);
  assert.equal(diffTexts("a\n", null).isGone, true);
  assert.equal(diffTexts("a\n".repeat(3000), "b\n".repeat(3000)).coarse, true);
});

test("only addresses that may be followed", () => {
  for (const bad of [
    "javascript:1",
    "JaVaScRiPt:1",
    "java\tscript:1",
    "data:text/html,x",
    "vbscript:1",
    "file:///x",
    "blob:x",
    "//x",
    "x",
  ])
    assert.equal(safeAddress(bad), null, bad);
  assert.equal(safeAddress("https://a.example/")?.hostname, "a.example");
  assert.equal(otherHost("https://good.example/", new URL("https://evil.example/")), "evil.example");
  assert.equal(otherHost("good.example", new URL("https://good.example/x")), null);
  assert.equal(otherHost("read this", new URL("https://evil.example/")), null);
});

test("a text that grows is cut where nothing can change any more", () => {
  assert.equal(safeCut("one\n\ntwo"), 5);
  assert.equal(safeCut("```\na\n\nb"), 0);
  assert.equal(safeCut("- a\n\n- b"), 0);
});

test("metrics", () => {
  const metrics = parseMetrics(
    '# HELP x\nclawdforge_a 3\nclawdforge_http_requests_total{status="200",route="/x"} 8\nclawdforge_http_requests_total{status="503"} 2\nclawdforge_s_bucket{le="0.1"} 5\nclawdforge_s_bucket{le="1"} 9\nclawdforge_s_bucket{le="+Inf"} 10\n',
  );
  assert.equal(gauge(metrics, "a"), 3);
  assert.equal(gauge(metrics, "none"), null);
  assert.deepEqual(requestsOf(metrics), { all: 10, bad: 2 });
  assert.deepEqual(
    [quantile(metrics, "s", 0.5), quantile(metrics, "s", 0.99), quantile(metrics, "t", 0.5)],
    [0.1, 1, null],
  );
});

test("axes", () => {
  assert.deepEqual(ticksOf(7.4, 4), [0, 2, 4, 6, 8]);
  assert.deepEqual(ticksOf(0, 4), [0]);
  assert.ok(ticksOf(0.013, 4).length <= 6);
  assert.deepEqual(
    logTicks(8, 3500, 5),
    [10, 30, 100, 300, 1000, 3000].filter((_, at) => at % 2 === 0),
  );
  assert.ok(
    timeTicks(
      Array.from({ length: 24 }, (_, at) => 1_794_960_000 + at * 3600),
      3600,
      8,
    ).length <= 8,
  );
  assert.equal(linePath([[0, 1], null, [2, 3], [4, 5]]), "M0.0 1.0M2.0 3.0L4.0 5.0");
  assert.equal(sparkPaths([], 10, 10).line, "");
});

test("the largest keep their names and places, the rest is one", () => {
  const series = ["a", "b", "c", "d"].map((name, at) => ({ name, values: [at + 1] }));
  assert.deepEqual(
    largest(series, 2).map((each) => [each.name, each.values[0]]),
    [
      ["d", 4],
      ["c", 3],
      ["other", 3],
    ],
  );
  assert.deepEqual(
    largest(series, 2, ["c", "d"]).map((each) => each.name),
    ["c", "d", "other"],
  );
});

test("the curl line survives its own quotes", () => {
  assert.match(codeFor("curl", "http://x/run", { prompt: "it's" }), /it'\\''s/);
});
