// @ts-check
// The span that is active, as the headers of W3C Trace Context have it: from the part that makes spans to those that call servers.

import { common } from "./copies.js";

/** @typedef {{ traceparent: string, tracestate?: string }} TraceContext */

/** @param {() => TraceContext | undefined} source */
export const useTraceContext = (source) => void (common.traceContext = source);

/** It is right until the first `await` where nothing keeps a context. */
export const traceContext = () => /** @type {(() => TraceContext | undefined) | undefined} */ (common.traceContext)?.();
