import { Agent, scripted } from "turnwheel";
import { RemoteAgent, fromResponse } from "turnwheel/remote";
import { agentHandler } from "turnwheel/server";
const handler = agentHandler(new Agent({ model: scripted(["there"]) }));
const remote = new RemoteAgent({ url: "http://a.example/x", fetch: (url, init) => handler(new Request(url, init)) });
const { text } = await remote.prompt("Go");
const run = new Agent({ model: scripted(["here"]) }).prompt("Go");
console.log(text, (await fromResponse(run.toResponse())).text);
