// The page without a server in a real browser, against the real program: the same bits.
//   SITE=target/web AGENT_SIM=path/to/agent-sim CHROMIUM=/usr/bin/chromium PICTURES=folder node --test web.test.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const site = process.env["SITE"] ?? "../../target/web";
const program = process.env["AGENT_SIM"] ?? "agent-sim";
const pictures = process.env["PICTURES"] ?? tmpdir();
const folder = mkdtempSync(join(tmpdir(), "web-"));
const kinds = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".wasm": "application/wasm",
};
let browser, server, address;

/** Files and nothing else, without headers of any use: what any host does. */
function answer(request, response) {
  const { pathname } = new URL(request.url, "http://here");
  const file = join(site, normalize(pathname === "/" ? "/index.html" : pathname));
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": kinds[extname(file)] }).end(readFileSync(file));
}

before(async () => {
  mkdirSync(pictures, { recursive: true });
  server = createServer(answer);
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  address = `http://127.0.0.1:${server.address().port}/`;
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A page that must not complain, nor ask anybody else for anything. */
async function open(query, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  // Those of the worker too.
  context.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.host !== new URL(address).host) wrong.push(`asks ${to}`);
  });
  await page.goto(address + query);
  return { page, wrong };
}

const said = (page) => page.textContent("#status");

async function saying(page, pattern) {
  const found = (source) => new RegExp(source).test(document.getElementById("status").textContent);
  await page.waitForFunction(found, pattern.source);
}

async function seek(page, step) {
  await page.evaluate((to) => {
    const slider = document.getElementById("seek");
    slider.value = String(to);
    slider.dispatchEvent(new Event("input"));
  }, step);
}

/** Goes to the end; the fingerprint that the page shows there. */
async function fingerprint(page, steps) {
  await seek(page, steps);
  await saying(page, /Fingerprint/);
  return /Fingerprint (\w+)/.exec(await said(page))[1];
}

/** The program's own fingerprint of the last step. */
function native(...args) {
  const out = mkdtempSync(join(folder, "run-"));
  execFileSync(program, ["run", ...args, "--alone", "--out", out]);
  const log = readFileSync(join(out, "steps.csv"), "utf8").trim().split("\n");
  return log.at(-1).split(",").at(-1);
}

for (const [problem, agents, steps] of [
  ["heat-1d", 8, 60],
  ["heat-2d", 16, 40],
  ["ks-1d", 8, 40],
  ["turbulence-2d", 64, 20],
])
  test(`${problem} has the same bits in the page as in the program`, async () => {
    const { page, wrong } = await open(`?problem=${problem}&agents=${agents}&steps=${steps}&seed=3&paused`);
    await saying(page, /error/);
    const asked = ["--agents", String(agents), "--steps", String(steps), "--seed", "3"];
    assert.equal(await fingerprint(page, steps), native(problem, ...asked));
    assert.deepEqual(wrong, []);
    await page.context().close();
  });

test("what was done by hand in the page is done again by the program", async () => {
  const { page, wrong } = await open("?problem=heat-1d&agents=8&steps=60&paused");
  await saying(page, /8 agents/);
  await seek(page, 20);
  await saying(page, /^step 20:/);
  await page.fill("#agent", "3");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#inspect:not([hidden])");
  await page.click("#kill");
  await page.waitForFunction(() => document.querySelectorAll("#events li").length === 1);
  await seek(page, 30);
  await saying(page, /1 silent/);
  const shown = await fingerprint(page, 60);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  const saved = join(folder, "scenario.toml");
  await download.saveAs(saved);
  assert.match(readFileSync(saved, "utf8"), /crash/);
  assert.equal(shown, native("--scenario", saved));
  assert.deepEqual(wrong, []);
  await page.context().close();
});

test("it plays by itself, at full speed too, and still listens", async () => {
  const { page, wrong } = await open("?problem=turbulence-2d&agents=64");
  const shown = async () => Number(/^\d+/.exec(await page.textContent("#clock"))?.[0]);
  await page.waitForFunction(() => Number(/^\d+/.exec(document.getElementById("clock").textContent)) > 3);
  await page.screenshot({ path: join(pictures, "web.png") });
  await page.selectOption("#speed", "full");
  const before = await shown();
  await page.waitForFunction(
    (step) => Number(/^\d+/.exec(document.getElementById("clock").textContent)) > step,
    before,
  );
  await page.click("#restart");
  await page.waitForFunction(() => Number(/^\d+/.exec(document.getElementById("clock").textContent)) > 0);
  await page.click("#play");
  await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
  assert.deepEqual(wrong, []);
  await page.context().close();
});

test("another problem is chosen on the page", async () => {
  const { page, wrong } = await open("?paused");
  await saying(page, /error/);
  assert.equal(await page.inputValue("#problem"), "heat-2d");
  assert.equal(await page.locator("#problem option").count(), 4);
  await page.selectOption("#problem", "heat-1d");
  await page.fill("#agents", "5");
  await page.click("#choice button");
  await saying(page, /5 agents/);
  assert.match(page.url(), /problem=heat-1d&agents=5$/);
  assert.equal(await page.inputValue("#problem"), "heat-1d");
  assert.deepEqual(wrong, []);
  await page.context().close();
});

test("nonsense in the address gets a sentence", async () => {
  const { page, wrong } = await open("?paused");
  for (const [query, sentence] of [
    ["?problem=heat-9d", /no problem called 'heat-9d'.*heat-1d, heat-2d, ks-1d, turbulence-2d/],
    ["?problem=fkpp-1d", /no problem called/],
    ["?problem=my.toml", /no problem called/],
    ["?agents=many", /'agents=many' is no whole number/],
    ["?agents=-1", /no whole number/],
    ["?agents=0", /0 agents controls nothing/],
    ["?agents=1000000", /too many for a page/],
    ["?agents=99999999999999999999", /no whole number/],
    ["?steps=0", /0 steps shows nothing/],
    ["?steps=1e3", /no whole number/],
    ["?seed=1.5", /no whole number/],
    ["?paused=maybe", /says nothing/],
    ["?agent=5", /cannot ask for 'agent'/],
    ["?problem=%3Cscript%3E", /no problem called '<script>'/],
  ]) {
    await page.goto(address + query);
    await page.waitForSelector("#status.bad");
    assert.match(await said(page), sentence, query);
    // From there one can go on.
    await page.waitForSelector("#choice:not([hidden])");
  }
  assert.deepEqual(wrong, []);
  await page.context().close();
});

test("from the address to the first picture", async () => {
  const { page } = await open("?problem=turbulence-2d&agents=256");
  const begun = performance.now();
  await page.reload();
  await saying(page, /error/);
  console.log(`# ${Math.round(performance.now() - begun)} ms from the address to the first picture`);
  await page.context().close();
});
