// @ts-check
// The processes that play. A package may be loaded once per process, and a process that hangs or ends is replaced.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** @import { Player } from "./compare.mjs" */

/** After this long a sequence counts as one that never ends. */
const PATIENCE_MS = 60_000;
const PLAYER = fileURLToPath(new URL("player.mjs", import.meta.url));

/** Starts a process that plays with the package in a folder. @param {string} folder @returns {{ play: Player, end(): void }} */
export function playerOf(folder) {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  let isReady = Promise.resolve("");

  const answer = (/** @type {import("node:child_process").ChildProcess} */ from) => new Promise((resolve) => {
    const timer = setTimeout(() => settle({ text: "the sequence does not end" }, true), PATIENCE_MS);
    const settle = (/** @type {any} */ value, /** @type {boolean} */ isOver) => {
      clearTimeout(timer);
      from.off("message", onMessage).off("exit", onExit);
      if (isOver && from === child) (child.kill("SIGKILL"), (child = undefined));
      resolve(value);
    };
    const onMessage = (/** @type {any} */ message) => settle(message, false);
    const onExit = (/** @type {any} */ code, /** @type {any} */ signal) => settle({ text: `the process ended: ${signal ?? code}` }, true);
    from.on("message", onMessage).on("exit", onExit);
  });

  const start = () => {
    const made = fork(PLAYER, [folder], { serialization: "advanced", execArgv: ["--no-warnings"], stdio: ["ignore", "inherit", "inherit", "ipc"] });
    child = made;
    isReady = answer(made).then((word) => (word === "ready" ? "" : `${folder} cannot be played: ${/** @type {any} */ (word).text}`));
    return made;
  };

  return {
    async play(plan, from) {
      const own = child ?? start();
      const trouble = await isReady;
      if (trouble) throw new Error(trouble);
      own.send({ plan, from });
      return /** @type {any} */ (await answer(own));
    },
    end: () => void child?.kill(),
  };
}
