// @ts-check
// A Worker that asks a model at the address that it is told.

import { Agent, openai } from "turnwheel";

export default {
  /** @param {Request} request */
  async fetch(request) {
    const model = openai("m", { apiKey: "qz-7Hk2Vw9Xe4Tb1Lm", baseUrl: await request.text() });
    const { error, text } = await new Agent({ model }).prompt("Go");
    return Response.json({ code: error?.code, message: error?.message, text });
  },
};
