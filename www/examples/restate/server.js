// @ts-check
// The agent in a workflow of Restate: every call of the model, every tool and the decision are steps that its server stores.

import * as restate from "@restatedev/restate-sdk";
import { Agent } from "turnwheel";
import { restate as hostOf } from "turnwheel/durable";
import { instructions, model, tell, tools } from "./agent.js";

const orders = restate.workflow({
  name: "orders",
  handlers: {
    async run(/** @type {restate.WorkflowContext} */ ctx, /** @type {{ customer: string }} */ { customer }) {
      const own = hostOf(ctx, restate);
      /** @type {import("turnwheel").AgentHost} */
      const host = {
        ...own,
        // Tells people what is asked. That is a step, too, so that they are told once.
        wait: async (name, request) => {
          await own.step?.(`${name}/tell`, () => tell({ id: ctx.key, name, request }), { kind: "host" });
          return own.wait?.(name, request) ?? null;
        },
      };
      const agent = new Agent({ model, tools, systemPrompt: instructions, host });
      const { text, stopReason, error } = await agent.prompt(`What about the order of ${customer}?`);
      if (error) throw error.cause ?? error;
      return { text, stopReason, messages: agent.messages };
    },

    // Authenticate who calls this: whoever can reach it decides about refunds.
    decide: async (/** @type {restate.WorkflowSharedContext} */ ctx, /** @type {{ name: string, decision: string }} */ { name, decision }) => ctx.promise(name).resolve(decision),
  },
});

restate.serve({ services: [orders], port: Number(process.env.PORT ?? 9080) });
