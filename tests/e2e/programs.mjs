// @ts-check
// Programs from Debian packages: found on the PATH, or installed where that is allowed,
// or missing with a reason.

import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** @param {string} name */
async function onPath(name) {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, name);
    if (await access(file, constants.X_OK).then(() => true, () => false)) return file;
  }
}

/**
 * Returns where the programs are. Missing ones are installed by apt if run as root; otherwise
 * the result says what to do.
 * @param {{ [program: string]: string }} wanted the Debian package of each
 * @returns {Promise<{ found?: { [program: string]: string }, missing?: string }>}
 */
export async function programs(wanted) {
  const look = async () => Object.fromEntries(await Promise.all(Object.keys(wanted).map(async (name) => [name, await onPath(name)])));
  const lack = (/** @type {any} */ found) => Object.keys(wanted).filter((name) => !found[name]);
  let found = await look();
  if (lack(found).length === 0) return { found };
  const packages = lack(found).map((name) => wanted[name]);
  const advice = `${lack(found).join(", ")} is not on the PATH; on Debian: apt-get install ${packages.join(" ")}`;
  if (process.getuid?.() !== 0 || !(await onPath("apt-get"))) return { missing: advice };
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    await run("apt-get", ["update", "-qq"], { env, timeout: 120_000 });
    await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages.flatMap((name) => name ?? [])], { env, timeout: 600_000 });
  } catch (error) {
    return { missing: `${advice}; it did not: ${String(/** @type {any} */ (error).stderr || error).trim().split("\n").at(-1)}` };
  }
  found = await look();
  return lack(found).length === 0 ? { found } : { missing: advice };
}
