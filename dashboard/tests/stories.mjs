// What the stand-in agent plays when the key stands in the prompt: the pictures are made from these.
const old = `export class Drain {
  private cursor = 0;

  async next(): Promise<Job | null> {
    const cursor = this.cursor;
    const job = await this.store.at(cursor);
    this.cursor = cursor + 1;
    return job;
  }
}
`;
const changed = `export class Drain {
  private cursor = 0;

  async next(): Promise<Job | null> {
    // Two workers must never read the same cursor.
    return this.lock.hold(async () => {
      const job = await this.store.at(this.cursor);
      if (job) this.cursor += 1;
      return job;
    });
  }
}
`;
const test = Array.from({ length: 22 }, (_, at) => `  it("drains in order, round ${at}", () => both(${at}));`).join(
  "\n",
);
const passed =
  "\u001b[32m PASS \u001b[0m test/queue/drain.test.ts\n  \u001b[32m✓\u001b[0m drains in order \u001b[2m(38 ms)\u001b[0m\n  \u001b[32m✓\u001b[0m drains in order with two busy workers \u001b[2m(112 ms)\u001b[0m\n  \u001b[32m✓\u001b[0m stops when the store is empty \u001b[2m(9 ms)\u001b[0m\n\u001b[2mTests: \u001b[0m\u001b[32m3 passed\u001b[0m\u001b[2m, 3 total\u001b[0m";

const read = (path) => ({ tool: { title: `Read ${path}`, kind: "read", rawInput: { path }, milliseconds: 90 } });
const search = (pattern) => ({
  tool: { title: `Search ${pattern}`, kind: "search", rawInput: { pattern }, milliseconds: 120 },
});
const context = (used, amount) => ({ use: { used, size: 200000, cost: { amount, currency: "USD" } } });

export const STORIES = {
  "CI failed three times": [
    {
      think:
        "The order is wrong only when both workers are busy, so I look at who moves the cursor. The store answers in order. So it must be the reader.",
      slow: 300,
    },
    read("src/queue/drain.ts"),
    read("test/queue/drain.test.ts"),
    search("cursor"),
    read("src/queue/store.ts"),
    search("drains in order"),
    read("src/queue/lock.ts"),
    {
      say: "The test is right and the code is not. `Drain.next()` reads the cursor, waits for the store, and only then moves it on. **When two workers wait at the same time both take the same job**, and the second one lands after a later one.\n\n- It needs both workers busy, so it shows on CI and hardly ever on a laptop.\n- The store is not at fault: it answers in the order it is asked.\n\nA lock around those three lines is enough. The public API stays as it is.",
    },
    context(41200, 0.21),
  ],
  "Go ahead with the lock": [
    {
      plan: [
        ["Take the cursor under a lock", "in_progress"],
        ["Keep both workers busy in the test", "pending"],
        ["Run the file fifty times", "pending"],
      ],
    },
    {
      tool: {
        title: "Edit drain.ts",
        kind: "edit",
        milliseconds: 210,
        rawInput: { file_path: "src/queue/drain.ts" },
        result: { content: [{ type: "diff", path: "src/queue/drain.ts", oldText: old, newText: changed }] },
      },
    },
    {
      tool: {
        title: "Edit drain.test.ts",
        kind: "edit",
        milliseconds: 190,
        rawInput: { file_path: "test/queue/drain.test.ts" },
        result: {
          content: [
            {
              type: "diff",
              path: "test/queue/drain.test.ts",
              oldText: 'describe("drain", () => {\n  a();\n  b();\n  c();\n});\n',
              newText: `describe("drain", () => {\n${test}\n});\n`,
            },
          ],
        },
      },
    },
    {
      plan: [
        ["Take the cursor under a lock", "completed"],
        ["Keep both workers busy in the test", "completed"],
        ["Run the file fifty times", "in_progress"],
      ],
    },
    {
      tool: {
        title: "Run the test",
        kind: "execute",
        milliseconds: 900,
        rawInput: { command: "npm test -- queue/drain" },
        result: {
          rawOutput: { exit_code: 0 },
          content: [{ type: "content", content: { type: "text", text: passed } }],
        },
      },
    },
    context(61000, 0.84),
    {
      say: "Both orders pass now. One pass proves little for a fault that showed three times in a week, so I want to run this file fifty times with both workers kept busy.",
    },
    {
      ask: {
        title: "Run the test fifty times",
        kind: "execute",
        rawInput: { command: "for n in $(seq 50); do npm test --silent -- queue/drain || exit 1; done" },
      },
    },
    { say: "\n\nFifty passes. The fault is gone." },
  ],
  "Rewrite the install page": [
    {
      say: "## What I would change\n\n| part | now | then |\n| --- | --- | --- |\n| first command | third screen | first screen |\n| sizes | none | 33 MB |\n\n1. Put the one command first.\n2. Say what it installs:\n\n```sh\ncurl -fsSL https://example.org/install | sh\n```\n\n> Readers copy before they read.\n\n",
      slow: 1,
    },
    { say: "I write the page in small steps, so that you can stop me at each. ".repeat(40), slow: 250 },
  ],
  "Label issue": [{ think: "Short." }, { say: "`bug`, `queue`, `needs-repro`" }, context(3100, 0.02)],
  "Notes for 2.4": [
    read("CHANGELOG.md"),
    { say: "### 2.4\n\n- Drains keep their order\n- Half the memory for long sessions" },
    context(8800, 0.31),
  ],
};
