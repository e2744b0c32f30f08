// @ts-check
// The span that is active, as the headers of W3C Trace Context have it: from the part that makes spans to those that call servers.

/** @typedef {{ traceparent: string, tracestate?: string }} TraceContext */

/** @type {() => TraceContext | undefined} */
let current = () => undefined;

/** @param {() => TraceContext | undefined} source */
export const useTraceContext = (source) => void (current = source);

/** It is right until the first `await` where nothing keeps a context. */
export const traceContext = () => current();
