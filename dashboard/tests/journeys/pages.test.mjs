// Journeys 3, 4, 12, 13 and 17: every page, both themes, both widths; apps; the playground; below a path.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { after, before, test } from "node:test";
import zlib from "node:zlib";
import { axeSource, go, launch, open, signIn } from "../browser.mjs";
import { Gateway, until } from "../gateway.mjs";

let gateway;
let browser;
let session;
const PICTURES = process.env.DASHBOARD_PICTURES;

before(async () => {
  gateway = await new Gateway({ permission_timeout_secs: 900 }).start();
  const token = await gateway.app("review-bot", { max_sessions: 8 });
  session = await gateway.session(token, { meta: { title: "Fix the flaky drain test", ticket: "OPS-412" } });
  await gateway.turn(token, session, "CI failed three times this week.");
  await gateway.begin(token, session, "Go ahead with the lock.");
  const failing = await gateway.session(token);
  await gateway.turn(token, failing, "fail");
  for (let at = 0; at < 5; ++at) await gateway.call("POST", "/run", { prompt: "Hello", agent: "demo" }, token);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await gateway?.finish();
});

const PLACES = [
  "#/",
  "#/sessions",
  "#/sessions?q=nothing-like-it",
  "SESSION",
  "#/runs",
  "#/runs?state=failed",
  "#/play",
  "#/apps",
  "#/apps?new=1",
  "#/apps/review-bot",
  "#/audit",
  "#/settings/doctor",
  "#/settings/configuration",
  "#/settings/agents",
  "#/settings/browsers",
  "#/settings/about",
  "#/more",
  "#/nowhere",
];

async function looked(page, place) {
  await go(page, place);
  await page.locator("#main h1, #main h2").first().waitFor({ state: "attached" });
  await until(
    () => page.evaluate(() => document.querySelectorAll(".outline-rows").length === 0),
    `${place} has loaded`,
  );
}

async function violations(page) {
  const found = await page.evaluate(
    async () =>
      (
        await window.axe.run(document, {
          runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        })
      ).violations,
  );
  return found.map(
    (each) =>
      `${each.id}: ${each.nodes
        .map((node) => `${node.target} ${node.failureSummary}`)
        .slice(0, 3)
        .join(" | ")}`,
  );
}

for (const [width, height] of [
  [1440, 900],
  [390, 844],
]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`axe finds nothing on any page, ${colorScheme}, ${width} px; nothing scrolls sideways`, async () => {
      const page = await open(browser, gateway.url, {
        viewport: { width, height },
        colorScheme,
        hasTouch: width < 760,
        bypassCSP: true,
      });
      await page.addInitScript(axeSource());
      await page.reload();
      await page.getByLabel("Token", { exact: true }).waitFor();
      assert.deepEqual(await violations(page), [], "sign-in");
      await signIn(page, gateway.admin);
      const found = [];
      for (const place of PLACES) {
        await looked(page, place === "SESSION" ? `#/sessions/${session}?app=review-bot` : place);
        found.push(...(await violations(page)).map((each) => `${place}: ${each}`));
        if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth))
          found.push(`${place} scrolls sideways`);
        if (PICTURES)
          await page.screenshot({ path: `${PICTURES}/${colorScheme}-${width}-${place.replace(/\W+/g, "-")}.png` });
      }
      assert.deepEqual(found, []);
      assert.deepEqual(page.faults, []);
      await page.context().close();
    });
  }
}

test("at 320 px nothing scrolls sideways, buttons can be hit, nothing moves", async () => {
  const page = await open(browser, gateway.url, {
    viewport: { width: 320, height: 640 },
    hasTouch: true,
    isMobile: true,
  });
  await signIn(page, gateway.admin);
  for (const place of PLACES) {
    await looked(page, place === "SESSION" ? `#/sessions/${session}?app=review-bot` : place);
    // A phone's browser zooms out where something is wider, and then says another width of its window.
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320), `${place} scrolls sideways`);
    const small = await page.evaluate(
      () =>
        [...document.querySelectorAll(".tabs a, .askbox .btn, .composer .btn")]
          .map((element) => element.getBoundingClientRect())
          .filter((box) => box.width > 0 && (box.height < 32 || box.width < 32)).length,
    );
    assert.equal(small, 0, place);
    assert.equal(
      await page.evaluate(() => document.getAnimations().filter((each) => each.playState === "running").length),
      0,
      place,
    );
  }
  await page.context().close();
});

test("a new app: its token is shown once and works; then it is nowhere", async () => {
  const page = await open(browser, gateway.url);
  await signIn(page, gateway.admin);
  await go(page, "#/apps?new=1");
  await page.getByLabel("Name").fill("made-here");
  await page.getByRole("button", { name: "Make it" }).click();
  const token = await page.locator(".token").textContent();
  assert.equal((await gateway.call("GET", "/whoami", undefined, token)).json.name, "made-here");
  await page.getByRole("button", { name: "I have it" }).click();
  await page.getByRole("heading", { name: "made-here" }).waitFor();
  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.documentElement.outerHTML, location.href]),
  );
  assert.ok(!kept.includes(token) && !gateway.log().includes(token));
  await page.getByLabel("Runs at most").fill("3");
  await page.getByRole("button", { name: "Save" }).click();
  await until(
    async () => (await gateway.call("GET", "/whoami", undefined, token)).json.max_runs === 3,
    "the limit holds",
  );
  await page.getByRole("button", { name: "Revoke…" }).click();
  await page.locator("#revoke-name").fill("made-here");
  await page.getByRole("button", { name: "Revoke made-here" }).click();
  await until(async () => (await gateway.call("GET", "/whoami", undefined, token)).status === 401, "the token is gone");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("the playground's answer is the one that curl gets, and so is its refusal", async () => {
  const token = await gateway.app("player");
  const page = await open(browser, gateway.url);
  await signIn(page, token);
  await go(page, "#/play");
  await page.getByLabel("agent").selectOption("demo");
  await page.getByLabel("Prompt", { exact: true }).fill("It's *me*");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Text", exact: true }).click();
  const [answered, direct] = [
    await page.locator(".card pre.code").last().textContent(),
    (await gateway.call("POST", "/run", { prompt: "It's *me*", agent: "demo" }, token)).json.result,
  ];
  assert.equal(answered, direct);
  await page.getByLabel("model", { exact: true }).fill("--bad");
  await page.getByRole("button", { name: /^Run/ }).click();
  await page.getByRole("alert").getByText("validation_failed").waitFor();
  await page.context().close();
});

test("it works below a path of a proxy", async () => {
  const proxy = http.createServer((request, response) => {
    if (!request.url.startsWith("/forge/")) {
      response.writeHead(404);
      response.end();
      return;
    }
    const passed = http.request(
      `${gateway.url}${request.url.slice("/forge".length)}`,
      {
        method: request.method,
        headers: {
          ...request.headers,
          host: new URL(gateway.url).host,
          ...(request.headers.origin ? { origin: gateway.url } : {}),
        },
      },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    passed.on("error", () => response.destroy());
    request.pipe(passed);
    response.on("close", () => passed.destroy());
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const page = await open(browser, `http://127.0.0.1:${proxy.address().port}/forge/`);
  await signIn(page, gateway.tokens.get("review-bot"));
  await go(page, `#/sessions/${session}`);
  await page.locator(".askbox").waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
  proxy.closeAllConnections();
  proxy.close();
});

test("first load: four requests, within the budget of bytes", async () => {
  const page = await gateway.call("GET", "/", undefined, "", { Accept: "text/html" });
  const names = [...page.text.matchAll(/(?:href|src)="(ui\/[^"]+)"/g)].map((found) => found[1]);
  assert.equal(names.length, 3);
  let [raw, packed] = [0, 0];
  for (const name of ["", ...names]) {
    const { text } = await gateway.call("GET", `/${name}`, undefined, "", { Accept: "text/html" });
    raw += Buffer.byteLength(text);
    packed += zlib.gzipSync(text, { level: 9 }).length;
  }
  console.log(`first load: ${Math.round(raw / 1000)} KB, ${Math.round(packed / 1000)} KB gzip`);
  assert.ok(raw <= 500_000, `${raw} bytes`);
  assert.ok(packed <= 150_000, `${packed} bytes gzip`);
  if (PICTURES) fs.writeFileSync(`${PICTURES}/sizes.json`, JSON.stringify({ raw, packed }));
});
