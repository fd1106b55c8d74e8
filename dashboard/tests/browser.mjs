// A real Chromium, driven by playwright-core, which ./test puts below build/dashboard-tests.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const REPO = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const PLACE = process.env.DASHBOARD_TESTS ?? path.join(REPO, "build/dashboard-tests");
const require = createRequire(path.join(PLACE, "package.json"));
export const axeSource = () => fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((name) =>
  fs.existsSync(name),
);
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];
export const WAIT_MS = 30_000;

export const launch = () => require("playwright-core").chromium.launch({ executablePath: CHROMIUM, args: FLAGS });

/** A page that fails its journey when it reports a fault of its own. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: "reduce",
    ...options,
  });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (fault) => page.faults.push(`${fault.name}: ${fault.message}`));
  page.on("console", (message) => {
    // A refused request is the gateway's answer, and not a fault of the page.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text()))
      page.faults.push(message.text());
  });
  await page.goto(url);
  return page;
}

export async function signIn(page, token) {
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page
    .getByRole("navigation", { name: "Pages", exact: true })
    .or(page.locator(".tabs"))
    .first()
    .waitFor({ state: "attached" });
}

export const go = (page, hash) =>
  page.evaluate((to) => {
    location.hash = to;
  }, hash);
