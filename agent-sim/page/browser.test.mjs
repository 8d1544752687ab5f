// The page in a real browser, against the real program.
//   AGENT_SIM=path/to/agent-sim CHROMIUM=/usr/bin/chromium PICTURES=folder node --test browser.test.mjs
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const program = process.env["AGENT_SIM"] ?? "agent-sim";
const pictures = process.env["PICTURES"] ?? tmpdir();
const folder = mkdtempSync(join(tmpdir(), "live-"));
let browser;
const programs = [];

before(async () => {
  mkdirSync(pictures, { recursive: true });
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  programs.forEach((child) => child.kill());
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a live run; resolves to its address. */
function live(...args) {
  const child = spawn(program, ["live", ...args, "--no-open", "--port", "0", "--out", join(folder, "saved")]);
  programs.push(child);
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (data) => {
      said += data;
      const found = /http:\S+/.exec(said);
      if (found) resolve(found[0]);
    });
    child.stderr.on("data", (data) => (said += data));
    child.on("exit", () => reject(new Error(`agent-sim ended: ${said}`)));
  });
}

/** A page that must not complain, nor ask anybody else for anything. */
async function open(url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const wrong = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.host !== new URL(url).host) wrong.push(`asks ${to}`);
  });
  await page.goto(url);
  return { page, wrong };
}

const error = async (page) => Number(/error ([\d.e+-]+)/.exec(await page.textContent("#status"))?.[1]);

async function stepShown(page) {
  return Number(/^\d+/.exec(await page.textContent("#clock"))?.[0]);
}

async function seek(page, step) {
  await page.evaluate((to) => {
    const slider = document.getElementById("seek");
    slider.value = String(to);
    slider.dispatchEvent(new Event("input"));
  }, step);
  await page.waitForFunction((to) => document.getElementById("status").textContent.startsWith(`step ${to}:`), step);
}

test("an agent is clicked and killed, the error rises and falls again, and what was done replays", async () => {
  const url = await live("heat-1d", "--agents", "8", "--paused");
  const { page, wrong } = await open(url);
  await page.waitForFunction(() => /error/.test(document.getElementById("status").textContent));
  const first = await error(page);
  await seek(page, 150);
  const settled = await error(page);
  assert.ok(settled < first / 10, `${first} to ${settled}`);

  // Click an agent on the field: they are drawn on its line, which is found by trying places.
  const box = await page.locator("#field").boundingBox();
  let chosen = "";
  for (let row = 4; row < 20 && chosen === ""; row++)
    for (let column = 0; column < 40 && chosen === ""; column++) {
      await page.mouse.click(box.x + ((column + 0.5) / 40) * box.width, box.y + ((row + 0.5) / 24) * box.height);
      chosen = await page.inputValue("#agent");
    }
  assert.match(chosen, /^[0-7]$/, "an agent was hit");
  await page.waitForSelector("#inspect:not([hidden])");
  // A push that the swarm has to work against, then a death in the middle of it.
  await page.click("[data-tool=up]");
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForFunction(() => document.querySelectorAll("#events li").length === 1);
  await page.click("[data-tool=select]");
  await page.click("#kill");
  await page.waitForFunction(() => document.querySelectorAll("#events li").length === 2);
  await seek(page, 158);
  const disturbed = await error(page);
  assert.ok(disturbed > 3 * settled, `${settled} to ${disturbed}`);
  assert.match(await page.textContent("#status"), /1 silent/);
  await seek(page, 299);
  const recovered = await error(page);
  assert.ok(recovered < disturbed / 3, `${disturbed} to ${recovered}`);

  await page.click("#forward");
  await page.waitForFunction(() => /Fingerprint/.test(document.getElementById("status").textContent));
  const shown = /Fingerprint (\w+)/.exec(await page.textContent("#status"))[1];
  await page.click("#save");
  await page.waitForFunction(() => /Saved/.test(document.getElementById("saved").textContent));
  const saved = /Saved: (\S+)\. /.exec(await page.textContent("#saved"))[1];
  const out = join(folder, "again");
  execFileSync(program, ["run", "--scenario", saved, "--alone", "--out", out]);
  const log = readFileSync(join(out, "steps.csv"), "utf8").trim().split("\n");
  assert.equal(log.at(-1).split(",").at(-1), shown);
  assert.deepEqual(wrong, []);
  await page.close();
});

test("hands can be taken back, and agents brought back and put down", async () => {
  const url = await live("heat-2d", "--agents", "16", "--paused", "--steps", "60");
  const { page, wrong } = await open(url);
  await page.waitForFunction(() => /16 agents/.test(document.getElementById("status").textContent));
  await seek(page, 20);
  await page.fill("#agent", "3");
  await page.keyboard.press("Enter");
  await page.click("#kill");
  await page.waitForFunction(() => /1 event|step 20/.test(document.getElementById("events").textContent));
  await seek(page, 30);
  assert.match(await page.textContent("#status"), /1 silent/);
  await page.click("#revive");
  await seek(page, 40);
  assert.doesNotMatch(await page.textContent("#status"), /silent/);
  await page.click("[data-tool=add]");
  const box = await page.locator("#field").boundingBox();
  await page.mouse.click(box.x + box.width / 3, box.y + box.height / 3);
  await page.waitForFunction(() => /17 agents/.test(document.getElementById("status").textContent));
  await page.click("#undo");
  await page.waitForFunction(() => /16 agents/.test(document.getElementById("status").textContent));
  // Nonsense gets a sentence.
  await page.selectOption("#fault", "gain");
  await page.fill("#parameters input[name=factor]", "a lot");
  await page.click("#inflict");
  await page.waitForSelector("#status.bad");
  assert.match(await page.textContent("#status"), /factor/);
  assert.deepEqual(wrong, []);
  await page.close();
});

test("it plays by itself, and pictures are looked at in three widths", async () => {
  const url = await live("turbulence-2d", "--agents", "64", "--fault", "crash,fraction=0.3,at=0.2");
  for (const [width, height, colorScheme] of [
    [360, 780, "light"],
    [1280, 900, "dark"],
    [1920, 1080, "light"],
  ]) {
    const { page, wrong } = await open(url, { viewport: { width, height }, colorScheme });
    await page.waitForFunction(() => /error/.test(document.getElementById("status").textContent));
    const from = await stepShown(page);
    await page.waitForFunction(
      (step) => Number(/^\d+/.exec(document.getElementById("clock").textContent)) > step,
      from,
    );
    await page.fill("#agent", "5");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#inspect:not([hidden])");
    await page.waitForTimeout(700);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${wide} on ${width}`);
    await page.screenshot({ path: join(pictures, `live-${width}.png`), fullPage: width === 360 });
    assert.deepEqual(wrong, []);
    await page.close();
  }
});

test("recorded runs, scenario files and fields of one's own are played too", async () => {
  const recorded = join(folder, "recorded");
  execFileSync(program, [
    "run",
    "heat-1d",
    "--steps",
    "30",
    "--fault",
    "crash,fraction=0.5,at=0.5",
    "--alone",
    "--out",
    recorded,
  ]);
  const last = readFileSync(join(recorded, "steps.csv"), "utf8").trim().split("\n").at(-1);
  execFileSync(program, ["new", "plate"], { cwd: folder });
  for (const [args, fingerprint] of [
    [["--replay", recorded], last.split(",").at(-1)],
    [["--scenario", join(recorded, "scenario.toml")], last.split(",").at(-1)],
    [[join(folder, "plate.toml"), "--controller", "none", "--steps", "20"], null],
  ]) {
    const { page, wrong } = await open(await live(...args, "--paused"));
    await page.waitForFunction(() => /error/.test(document.getElementById("status").textContent));
    await page.evaluate(() => {
      const slider = document.getElementById("seek");
      slider.value = slider.max;
      slider.dispatchEvent(new Event("input"));
    });
    await page.waitForFunction(() => /Fingerprint/.test(document.getElementById("status").textContent));
    const shown = /Fingerprint (\w+)/.exec(await page.textContent("#status"))[1];
    if (fingerprint) assert.equal(shown, fingerprint);
    assert.deepEqual(wrong, []);
    await page.close();
  }
});

test("a wrong token gets nothing to see, and the page says so", async () => {
  const url = await live("heat-1d", "--paused", "--listen", "127.0.0.1", "--token", "openSesame1");
  const good = await open(url);
  await good.page.waitForFunction(() => /error/.test(document.getElementById("status").textContent));
  await good.page.close();
  const page = await browser.newPage();
  await page.goto(url.replace("openSesame1", "openSesame2"));
  await page.waitForSelector("#status.bad");
  assert.match(await page.textContent("#status"), /connection/);
  await page.close();
});

test("from the command to the first picture, and how many are painted", async () => {
  const page = await browser.newPage();
  await page.addInitScript(() => {
    // The field's picture is put down once for each frame that is painted.
    const put = CanvasRenderingContext2D.prototype.drawImage;
    window.painted = 0;
    CanvasRenderingContext2D.prototype.drawImage = function (...how) {
      if (this.canvas.id === "field") window.painted += 1;
      return put.apply(this, how);
    };
  });
  await page.goto("about:blank");
  const begun = performance.now();
  const url = await live("turbulence-2d", "--agents", "256", "--steps", "2000");
  await page.goto(url);
  await page.waitForFunction(() => /error/.test(document.getElementById("status").textContent));
  console.log(`# ${Math.round(performance.now() - begun)} ms from the command to the first picture`);
  await page.selectOption("#speed", "full");
  const from = await page.evaluate(() => [performance.now(), window.painted]);
  await page.waitForTimeout(3000);
  const to = await page.evaluate(() => [performance.now(), window.painted]);
  const rate = (to[1] - from[1]) / ((to[0] - from[0]) / 1000);
  console.log(`# ${rate.toFixed(1)} frames a second are painted, the loop at full speed`);
  assert.ok(rate > 0, "it paints");
  await page.close();
});
