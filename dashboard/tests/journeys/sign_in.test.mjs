// Journeys 1, 2 and 19: who gets in, and what they see.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { go, launch, open, signIn } from "../browser.mjs";
import { Gateway, until } from "../gateway.mjs";

let gateway;
let browser;

before(async () => {
  gateway = await new Gateway().start();
  await gateway.app("review-bot");
  await gateway.app("other");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await gateway?.finish();
});

const kept = (page) =>
  page.evaluate(() =>
    JSON.stringify([
      { ...sessionStorage },
      { ...localStorage },
      document.cookie,
      document.documentElement.outerHTML,
      location.href,
    ]),
  );

test("the owner's token opens the overview, and is kept nowhere", async () => {
  const page = await open(browser, gateway.url);
  await signIn(page, gateway.admin);
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  for (const name of ["Apps and tokens", "Audit", "Settings"]) await page.getByRole("link", { name }).first().waitFor();
  assert.ok(!(await kept(page)).includes(gateway.admin), "the owner's token is still in the page");
  assert.deepEqual(page.faults, []);
  await page.reload();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await page.context().close();
});

test("an app's token opens the app's own part, and owner's addresses show nothing", async () => {
  const page = await open(browser, gateway.url);
  await signIn(page, gateway.tokens.get("review-bot"));
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Apps and tokens" }).count(), 0);
  for (const place of ["#/apps", "#/apps/other", "#/audit"]) {
    await go(page, place);
    await page.getByText("There is nothing at this address.").waitFor();
  }
  const foreign = await gateway.session(gateway.tokens.get("other"), { meta: { title: "Another app's" } });
  await go(page, `#/sessions/${foreign}`);
  await page.getByText("There is no such session.").waitFor();
  await go(page, "#/sessions");
  await page.getByText("No sessions.").waitFor();
  assert.ok(!(await page.content()).includes("Another app's"));
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a wrong token is refused with a sentence", async () => {
  const page = await open(browser, gateway.url);
  await page.getByLabel("Token", { exact: true }).fill("cf_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("This token is not known").waitFor();
  await page.context().close();
});

test("a link works once, and its code leaves the address at once", async () => {
  const made = await gateway.call("POST", "/admin/sign-in-codes", {});
  assert.equal(made.status, 200, made.text);
  const page = await open(browser, `${gateway.url}/#/in/${made.json.code}`);
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  assert.ok(!page.url().includes(made.json.code));
  const again = await open(browser, `${gateway.url}/#/in/${made.json.code}`);
  await again.getByRole("alert").getByText("This link has been used already").waitFor();
  assert.ok(!again.url().includes(made.json.code));
  assert.ok(!gateway.log().includes(made.json.code));
  await page.context().close();
  await again.context().close();
});

test("a link signs in a tab that already shows the form", async () => {
  const { code } = (await gateway.call("POST", "/admin/sign-in-codes", {})).json;
  const page = await open(browser, gateway.url);
  await page.getByLabel("Token", { exact: true }).waitFor();
  await go(page, `#/in/${code}`);
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  assert.ok(!page.url().includes(code));
  await page.context().close();
});

test("a second tab needs no second sign-in, and signing out ends both", async () => {
  const page = await open(browser, gateway.url);
  await signIn(page, gateway.tokens.get("review-bot"));
  const second = await page.context().newPage();
  await second.goto(`${gateway.url}/#/runs`);
  await second.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  await second.getByRole("button", { name: "Sign out" }).first().click();
  await second.getByLabel("Token", { exact: true }).waitFor();
  await page.getByLabel("Token", { exact: true }).waitFor();
  await page.context().close();
});

test("a token that is revoked in the middle asks for another sign-in, and the draft stays", async () => {
  const token = await gateway.app("short-lived");
  const session = await gateway.session(token);
  const page = await open(browser, gateway.url);
  await signIn(page, token);
  await go(page, `#/sessions/${session}`);
  await page.getByLabel("What comes next").fill("An unfinished thought");
  const another = (await gateway.call("POST", "/admin/tokens/short-lived/rotate")).json.token;
  await page.getByText("Your sign-in has ended.").waitFor();
  assert.equal(await page.getByLabel("What comes next").inputValue(), "An unfinished thought");
  await page.getByLabel("Token", { exact: true }).fill(another);
  await page.getByRole("button", { name: "Sign in" }).click();
  await until(async () => (await page.getByText("Your sign-in has ended.").count()) === 0, "the sheet is gone");
  assert.equal(await page.getByLabel("What comes next").inputValue(), "An unfinished thought");
  await page.context().close();
});
