// @ts-check
// turnwheel/otel: runs as OpenTelemetry spans and metrics.

export { observe } from "./otel/observe.js";
export { spansOf } from "./otel/spans-of.js";
