// @ts-check
// The same runs with the newest line of the SDK, in a folder that has it: see tests/e2e/otel.mjs.

import { test } from "node:test";
import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
// @ts-ignore: only that folder has it
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import * as turnwheel from "turnwheel";
import * as otel from "turnwheel/otel";
import { observedRuns } from "./runs.mjs";
import { setUp } from "./set-up.mjs";

/** This line takes options. */
class Processor extends SimpleSpanProcessor {
  /** @param {any} exporter */
  constructor(exporter) {
    super({ exporter });
  }
}

observedRuns(test, turnwheel, otel, setUp({ api, AsyncLocalStorageContextManager, TracerProvider, InMemorySpanExporter, SimpleSpanProcessor: Processor, AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader }));
