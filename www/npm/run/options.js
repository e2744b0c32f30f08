// @ts-check
// What holds for a run, whatever its agent is set to.

import { budgetSettings } from "../agent/settings.js";
import { jsonOf } from "../shared.js";

/** @import { RunOptions } from "../index.js" */
/** @import { Core } from "../agent/core.js" */

/** The options of a run for the engine: an empty text if there are none. @param {Core} core @param {RunOptions} options */
export function optionsJson({ settings, registration }, { model, streamOptions, activeTools, systemPrompt, metadata, budget }) {
  if ((model ?? streamOptions ?? activeTools ?? systemPrompt ?? metadata ?? budget) === undefined) return "";
  const own = model && settings.models.settingsOf(model);
  // The model may have a key function, and be the first that has.
  if (own) registration.configure();
  return jsonOf("the options of the run are", { model: own, streamOptions, activeTools, systemPrompt, metadata, budget: budgetSettings(budget) });
}

/**
 * What a checkpoint keeps of the options of a run, and what counts of them if one has them, whoever wrote it: the system
 * prompt and the request are the host's alone.
 * @param {RunOptions | undefined} options @param {Core} core @returns {RunOptions}
 */
export function believableOptions({ streamOptions, activeTools, metadata, budget } = {}, { settings }) {
  const { headers, body, ...answer } = streamOptions ?? {};
  const known = settings.tools.definitions();
  return {
    ...(metadata && { metadata }), ...(budget && { budget }), ...(streamOptions && { streamOptions: answer }),
    ...(Array.isArray(activeTools) && { activeTools: activeTools.filter((name) => known.some((tool) => tool.name === name)) }),
  };
}
