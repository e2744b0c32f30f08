// @ts-check
// turnwheel/otel with the SDK that runs on Node 20: api 1.9.1, SDK 2.12. `cargo xtask e2e otel` does the same with the other line.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { readFileSync } from "node:fs";
import * as otel from "../../../pkg/otel.js";
import * as turnwheel from "../kit.mjs";
import { observedRuns } from "./runs.mjs";
import { setUp } from "./set-up.mjs";

const sdk = setUp({ api, AsyncLocalStorageContextManager, TracerProvider: BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader });

observedRuns(test, turnwheel, otel, sdk);

test("the names are those of the pinned conventions", () => {
  const text = readFileSync(new URL("../../../www/npm/otel/names.js", import.meta.url), "utf8");
  const names = [...text.matchAll(/"((?:gen_ai|error)\.[\w.]+)"/g)].map(([, name]) => /** @type {string} */ (name));
  assert.ok(names.length > 30);
  const known = new Set(Object.values(conventions));
  // These two are in the conventions' own repository, which follows 1.45.0.
  const newer = ["gen_ai.invoke_agent.duration", "gen_ai.execute_tool.duration"];
  assert.deepEqual(names.filter((name) => !known.has(name)).sort(), newer.sort());
});

test("misuse is named", () => {
  turnwheel.misused(() => otel.observe(/** @type {any} */ ({})), /observe takes an Agent, got an object/);
  const agent = new turnwheel.Agent({ model: turnwheel.scripted([]) });
  turnwheel.misused(() => otel.observe(agent, /** @type {any} */ ({ trace: 1 })), /unknown option `trace`/);
  turnwheel.misused(() => otel.spansOf(/** @type {any} */ (1)), /spansOf takes a list of events, got a number/);
});

test("without an SDK nothing is made, and everything works", async () => {
  const agent = new turnwheel.Agent({ model: turnwheel.scripted([turnwheel.call("look"), "Done."]), tools: [turnwheel.testTool("look", () => "seen")] });
  otel.observe(agent, { name: "quiet" });
  assert.equal((await agent.prompt("Go")).text, "Done.");
  assert.equal(sdk.open(), 0);
});

const { Agent, scripted, subagent } = turnwheel;
/** A tracer whose spans are no spans, and how many it was asked for. */
const nothing = () => ({ asked: 0, startSpan() { this.asked++; return api.trace.wrapSpanContext(api.INVALID_SPAN_CONTEXT); } });
const boss = (/** @type {() => unknown} */ execute) => new Agent({
  model: scripted([{ toolCalls: [{ callId: "s", toolName: "clerk", arguments: { prompt: "Look" } }] }, "Done.", "Done."]),
  tools: [subagent({ name: "clerk", description: "", agent: () => (execute(), new Agent({ model: scripted(["Seen."]) })) })],
});

test("without an SDK a run asks for one span, and for nothing of what is inside; the next run asks anew", async () => {
  const tracer = nothing();
  const agent = boss(() => {});
  otel.observe(agent, { tracer: /** @type {any} */ (tracer) });
  await agent.prompt("Go");
  assert.equal(tracer.asked, 1);
  Object.assign(tracer, { startSpan: sdk.tracer.startSpan.bind(sdk.tracer) });
  await agent.prompt("Again");
  assert.deepEqual(sdk.finished().map(({ name }) => name), ["chat scripted", "invoke_agent"]);
});

test("without spans there are metrics all the same", async () => {
  const tracer = nothing();
  const agent = boss(() => {});
  otel.observe(agent, { name: "unseen", tracer: /** @type {any} */ (tracer), meter: sdk.meter });
  await agent.prompt("Go");
  assert.equal(tracer.asked, 1);
  const points = (await sdk.metrics()).filter(({ attributes }) => attributes["gen_ai.agent.name"] === "unseen");
  assert.ok(points.length >= 3, JSON.stringify(points));
});

test("an agent inside a call does not have the name of the one around it, whose beginning was not seen", async () => {
  const agent = boss(() => otel.observe(agent, { name: "boss", tracer: sdk.tracer }));
  await agent.prompt("Go");
  assert.deepEqual(sdk.finished().map(({ name }) => name), ["chat scripted", "invoke_agent"]);
});
