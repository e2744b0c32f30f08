// This package, as an app on Node imports it.
export const meta = { name: 'turnwheel', packages: [] };

/** `folder` is a package to load in place of the built one. */
export async function load(folder = '../../pkg') {
  return engineOf(await import(`${folder}/entry/node.js`));
}

/** Makes the engine from a package that a host has imported in its own way. */
export function engineOf({ Agent, openaiCompatible }) {
  return {
    async run(spec) {
      const agent = new Agent({
        model: openaiCompatible(spec.model, { baseUrl: spec.baseURL, apiKey: spec.apiKey, fetch: spec.fetch }),
        systemPrompt: spec.system, maxTurns: spec.maxTurns, retry: { maxAttempts: 1 }, tools: spec.tools.map(({ shape, ...tool }) => tool),
      });
      let run;
      agent.subscribe((event) => {
        if (event.type !== 'message_update') return;
        if (event.delta.type === 'text') spec.onDelta(event.delta.delta);
        else if (event.delta.type === 'tool_call') {
          spec.onToolInputDelta(event.delta.delta);
          if (spec.readsPartial) run.partialArguments(event.delta.callId);
        }
      });
      run = agent.prompt(spec.prompt);
      const result = await run.result;
      if (result.error) throw result.error;
      return { text: result.text };
    },
  };
}
