// Journey 10: whatever an agent says, nothing runs and nothing leaves. A page without the policy, which puts the same
// texts into itself as HTML, must fail: so the corpus is shown to bite.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { go, launch, open, signIn } from "../browser.mjs";
import { Gateway } from "../gateway.mjs";
import { hostileTexts } from "../hostile.mjs";

let gateway;
let browser;

before(async () => {
  gateway = await new Gateway({ permission_timeout_secs: 300 }).start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await gateway?.finish();
});

const TAGS = new Set(
  "A ABBR ARTICLE ASIDE B BLOCKQUOTE BODY BR BUTTON CIRCLE CODE DD DEL DIALOG DIV DL DT EM FIGURE FOOTER FORM G H1 H2 H3 HEAD HEADER HR HTML I INPUT KBD LABEL LI LINE LINK MAIN MARK META NAV NOSCRIPT OL OPTION P PATH PRE RECT SCRIPT SECTION SELECT SMALL SPAN STRONG SVG TABLE TBODY TD TEXTAREA TEXT TH THEAD TIME TITLE TR UL".split(
    " ",
  ),
);

async function watched(url) {
  const page = await open(browser, "about:blank");
  const asked = [];
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (/^https?:$/.test(target.protocol)) asked.push(target);
  });
  await page.addInitScript(() => {
    window.reports = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.reports.push(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  await page.goto(url);
  return { page, asked };
}

test("in every field that an agent controls: nothing runs, nothing is fetched, no report", async () => {
  const token = await gateway.app("review-bot");
  const session = await gateway.session(token, { meta: { title: hostileTexts()[1], note: hostileTexts()[0] } });
  const { page, asked } = await watched(gateway.url);
  await signIn(page, token);
  await go(page, `#/sessions/${session}`);
  await page.getByLabel("What comes next").waitFor();
  await gateway.begin(token, session, "hostile");
  await page.locator(".askbox").waitFor();
  await page.locator(".step > button.h").evaluateAll((rows) =>
    rows.forEach((row) => {
      if (row.getAttribute("aria-expanded") === "false") row.click();
    }),
  );
  await page.waitForFunction(() => document.querySelectorAll('.step > button.h[aria-expanded="false"]').length === 0);
  for (const place of ["#/sessions", "#/", `#/sessions/${session}`]) {
    await go(page, place);
    await page.locator("h1").first().waitFor({ state: "attached" });
  }
  await page.locator(".askbox").waitFor();
  const found = await page.evaluate(() => ({
    hit: window.hit,
    reports: window.reports,
    tags: [...new Set([...document.querySelectorAll("*")].map((element) => element.tagName.toUpperCase()))],
    links: [...document.querySelectorAll(".md a")].map((link) => [link.href, link.rel]),
    handlers: [...document.querySelectorAll("*")]
      .flatMap((element) => [...element.attributes].map((attribute) => attribute.name))
      .filter((name) => name.startsWith("on")),
    bodies: document.querySelectorAll("#root").length,
  }));
  assert.equal(found.hit, undefined);
  assert.deepEqual(found.reports, []);
  assert.deepEqual(
    found.tags.filter((tag) => !TAGS.has(tag)),
    [],
  );
  assert.deepEqual(found.handlers, []);
  assert.equal(found.bodies, 1);
  assert.ok(
    found.links.length > 0 &&
      found.links.every(([href, rel]) => /^(https?:|mailto:)/.test(href) && rel.includes("noopener")),
  );
  assert.deepEqual(asked.filter((target) => target.origin !== gateway.url).map(String), []);
  assert.ok((await page.locator(".askbox").textContent()).includes("U+202E"), "what cannot be seen is shown");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("the same texts on a page that trusts them do harm", async () => {
  // But one that leads away from the page, which would end the look at it.
  const harmful = hostileTexts().filter((text) => !text.startsWith("<meta"));
  const server = http.createServer((request, response) => {
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(
      `<!doctype html><body><script>for (const text of ${JSON.stringify(harmful).replaceAll("<", "\\u003c")}) { const box = document.createElement("div"); box.innerHTML = text; document.body.append(box); }</script>`,
    );
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { page, asked } = await watched(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.hit === 1);
  assert.ok(asked.some((target) => target.hostname === "evil.invalid"));
  await page.context().close();
  server.close();
});
