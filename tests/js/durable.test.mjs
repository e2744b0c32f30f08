import { test } from "node:test";
import { survive } from "./steps/worlds.mjs";
test("x", async () => {
  const mode = process.env.MODE ?? "name";
  const from = Number(process.env.FROM ?? 1), n = Number(process.env.N ?? 20);
  let kills = 0; const t = Date.now();
  for (let seed = from; seed < from + n; seed++) {
    const out = await Promise.race([survive(seed, { mode }).catch((e) => ({ e })), new Promise((r) => setTimeout(() => r({ hang: true }), 5000))]);
    if (out.e || out.hang) { console.log("seed", seed, out.hang ? "HANG" : out.e.stack?.slice(0, 1500)); if (!process.env.ALL) process.exit(1); } else kills += out.kills;
  }
  console.log({ kills, ms: Date.now() - t });
});
