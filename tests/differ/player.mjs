// @ts-check
// A process that has one package, and plays what it is given, one sequence after the other: `node player.mjs FOLDER`, with
// messages from its parent.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { takeOver } from "./clock.mjs";
import { planOf } from "./plan.mjs";
import { World } from "./world.mjs";

const [folder = ""] = process.argv.slice(2);
const href = (/** @type {string} */ file) => pathToFileURL(join(folder, file)).href;
const own = await import(href("entry/node.js"));
// What is loaded on demand would come at another moment in each process, so it comes before.
for (const file of readdirSync(folder)) if (/^(core|chunk)-.*\.js$/.test(file)) await import(href(file));

/** How many sequences are played for that alone. Their seeds are not those of any other. */
const WARM = 40;
let world = new World(own, planOf(1), undefined);
takeOver(() => world);
/** @param {import("./plan.mjs").Plan} plan @param {import("./world.mjs").Saved} [from] */
async function played(plan, from) {
  world = new World(own, plan, from);
  try {
    await world.play();
  } catch (error) {
    world.say("the player failed", error);
  }
  return { text: world.lines.join("\n"), saved: world.saved };
}
for (let seed = 1; seed <= WARM; seed++) await played(planOf(0x7fff0000 + seed));

process.on("message", async (/** @type {any} */ { plan, from }) => process.send?.(await played(plan, from)));
process.send?.("ready");
