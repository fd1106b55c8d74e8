// Journeys 5, 6 and 7: a session from prompt to end, its questions, and restarts in the middle.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { go, launch, open, signIn } from "../browser.mjs";
import { Gateway, textOf, until } from "../gateway.mjs";

let gateway;
let browser;
let token;
let page;
const KEYS_WAIT_MS = 700;

before(async () => {
  gateway = await new Gateway({ permission_timeout_secs: 300 }).start();
  token = await gateway.app("review-bot");
  browser = await launch();
  page = await open(browser, gateway.url);
  await signIn(page, token);
});
after(async () => {
  await browser?.close();
  await gateway?.finish();
});

const card = (command) => page.locator(".askbox").filter({ hasText: command });
const audit = async (session) =>
  (await gateway.call("GET", "/admin/events?limit=200")).json.events.filter(
    (event) => event.event === "permission" && event.session_id === session,
  );

async function asking(...prompts) {
  const session = await gateway.session(token);
  await go(page, `#/sessions/${session}`);
  await page.getByLabel("What comes next").waitFor();
  for (const prompt of prompts) await gateway.begin(token, session, prompt);
  return session;
}

test("thought, plan, tools, diff, terminal, Markdown and a question, in order", async () => {
  const session = await gateway.session(token, { meta: { title: "Fix the flaky drain test" } });
  await gateway.turn(token, session, "CI failed three times this week.");
  await go(page, `#/sessions/${session}`);
  await page.getByText("A lock around those three lines is enough.").first().waitFor();
  await page.getByLabel("What comes next").fill("Go ahead with the lock.");
  await page.keyboard.press("Control+Enter");
  await card("seq 50").waitFor();
  const kinds = await page
    .locator(".script > div")
    .evaluateAll((rows) => rows.map((row) => row.className.match(/row-(\w+)/)?.[1]));
  assert.deepEqual(kinds, ["turn", "thought", "look", "text", "turn", "tool", "tool", "tool", "text", "ask"]);
  assert.equal(await page.locator(".diff tr.a").first().isVisible(), true);
  assert.ok((await page.locator(".term").first().textContent()).includes("3 passed"));
  assert.equal(await page.locator(".rail .plan li").count(), 3);
  assert.ok((await page.locator(".prompt").last().textContent()).includes("Go ahead with the lock."));
  await page.getByRole("button", { name: /^Allow once/ }).click();
  await page.getByText("Fifty passes.").first().waitFor();
  const events = await gateway.journal(token, session);
  await page.keyboard.press("r");
  await page.getByText(`${events.length} of ${events.length}`).waitFor();
  assert.deepEqual(page.faults, []);
});

test("a key allows what has been on screen for a while, and nothing before", async () => {
  // Pressed in the moment in which the card is there, however slow the machine is.
  await page.evaluate(() => {
    const watch = new MutationObserver(() => {
      if (!document.querySelector(".askbox")) return;
      watch.disconnect();
      document.activeElement?.blur();
      requestAnimationFrame(() => document.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true })));
      window.pressed = true;
    });
    watch.observe(document.body, { childList: true, subtree: true });
  });
  const session = await asking("ask echo by-key");
  await card("echo by-key").waitFor();
  await page.waitForFunction(() => window.pressed);
  assert.deepEqual(await audit(session), []);
  await new Promise((resolve) => setTimeout(resolve, KEYS_WAIT_MS + 400));
  await page.keyboard.press("a");
  await page.getByText(/Allowed once by/).waitFor();
  const [decided, ...more] = await until(async () => {
    const lines = await audit(session);
    return lines.length > 0 && lines;
  }, "it is in the audit");
  assert.equal(decided.meta.decision, "allow");
  assert.deepEqual(more, []);
});

test("a key in a field writes, and allows nothing", async () => {
  const session = await asking("ask echo in-field");
  await card("echo in-field").waitFor();
  await page.getByLabel("What comes next").focus();
  await new Promise((resolve) => setTimeout(resolve, KEYS_WAIT_MS + 400));
  await page.keyboard.press("a");
  assert.equal(await page.getByLabel("What comes next").inputValue(), "a");
  assert.deepEqual(await audit(session), []);
  await page.getByRole("button", { name: /^Deny/ }).click();
  await page.getByText(/Denied by/).waitFor();
});

test("what another client has answered is told", async () => {
  const session = await asking("ask echo elsewhere");
  await card("echo elsewhere").waitFor();
  const [question] = (await gateway.call("GET", `/sessions/${session}/permissions`, undefined, token)).json.permissions;
  await gateway.call("POST", `/sessions/${session}/permissions/${question.id}`, { decision: "deny" }, token);
  await page.getByText(/Denied by review-bot/).waitFor();
  assert.equal(await card("echo elsewhere").count(), 0);
});

test("a command that does not fit cannot be allowed unread", async () => {
  const session = await asking(`ask ${Array.from({ length: 200 }, (_, at) => `echo line ${at}`).join("; \\\n")}`);
  await card("echo line 199").waitFor();
  const allow = page.getByRole("button", { name: /^Allow once/ });
  assert.equal(await allow.count(), 0);
  await page.evaluate(() => document.activeElement?.blur());
  await new Promise((resolve) => setTimeout(resolve, KEYS_WAIT_MS + 400));
  await page.keyboard.press("a");
  assert.deepEqual(await audit(session), []);
  // The last of them makes room for the answer, perhaps between a look and a click.
  const more = page.getByRole("button", { name: "Read all" });
  for (let at = 0; at < 50 && (await allow.count()) === 0; at += 1) {
    await more.or(allow).first().waitFor();
    await more.click({ timeout: 500 }).catch(() => undefined);
  }
  await allow.click();
  await page.getByText(/Allowed once by/).waitFor();
});

test("of two questions each gets its own answer", async () => {
  const session = await asking("ask twice");
  await card("echo first").waitFor();
  await page.getByRole("button", { name: /^Allow once/ }).click();
  await card("echo second").waitFor();
  await page.getByRole("button", { name: /^Deny/ }).click();
  await page.getByText("Both answered.").first().waitFor();
  assert.deepEqual((await audit(session)).map((line) => line.meta.decision).sort(), ["allow", "deny"]);
});

test("a cancelled turn ends its question", async () => {
  await asking("ask echo never");
  await card("echo never").waitFor();
  await page.getByRole("button", { name: /Cancel turn/ }).click();
  await page.getByRole("button", { name: /Really cancel/ }).click();
  await page.getByText("The turn was cancelled").waitFor();
  assert.equal(await card("echo never").count(), 0);
});

test("ten kills while a turn streams: the page has what the journal has", async () => {
  const session = await gateway.session(token);
  await go(page, `#/sessions/${session}`);
  await page.getByLabel("What comes next").waitFor();
  for (let kill = 0; kill < 10; ++kill) {
    await gateway.begin(token, session, "count 120");
    const least = 5 + kill * 3;
    await until(
      async () => {
        // The text of the turn before may have that number, too.
        const said = await page.locator(".script .say").allTextContents();
        return said.length === kill + 1 && said[kill].includes(` ${least} `);
      },
      "it streams",
    );
    await gateway.end("SIGKILL");
    await gateway.start();
  }
  await gateway.turn(token, session, "say The end.");
  await page.getByText("The end.").first().waitFor();
  const events = await gateway.journal(token, session);
  assert.deepEqual(
    events.map((event) => event.id),
    events.map((_, at) => at + 1),
  );
  const ends = events.filter((event) => event.event === "done" || event.event === "failed");
  assert.equal(ends.length, 11);
  const shown = (await page.locator(".script .say").allTextContents()).join(" ");
  assert.equal(shown.replace(/\s+/g, ""), textOf(events).replace(/\s+/g, ""));
  await page.keyboard.press("r");
  await page.getByText(`${events.length} of ${events.length}`).waitFor();
  assert.deepEqual(page.faults, []);
});
