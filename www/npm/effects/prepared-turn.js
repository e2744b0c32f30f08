// @ts-check
// What holds for a turn: `prepareTurn` of the host. Loaded once it is set.

import { checkTurnOptions } from "../options/options.js";
import { transformAnswer } from "../rules/transform.js";
import { misuse, quiet } from "../core.js";

/** @import { Usage } from "../index.js" */
/** @import { Driver } from "../run/driver.js" */

/** Asks the host. Returns the answer for the engine. @param {Driver} run @param {Usage} usage of the run so far @param {AbortSignal} signal */
export async function preparedTurn(run, usage, signal) {
  const { core, fold } = run;
  const { messages: history } = fold;
  run.turnView = undefined;
  const answer = await core.options.prepareTurn?.({ ...run.about(), messages: history.slice(), usage, signal });
  quiet(answer);
  if (answer === undefined || answer === null) return {};
  checkTurnOptions(answer, { messages: "list" }, core.settings.tools, "the answer of `prepareTurn`", "the answer of `prepareTurn`: ");
  const { model, streamOptions, activeTools, systemPrompt, messages } = answer;
  if (messages?.length === 0) throw misuse("the answer of `prepareTurn`: `messages` is empty; a model cannot be asked about nothing");
  run.turnView = messages;
  const view = messages && transformAnswer(messages, history);
  return { model: model && core.settings.models.settingsOf(model), streamOptions, activeTools, systemPrompt, ...(view && "view" in view && { messages: view.view }) };
}
