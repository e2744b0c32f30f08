// @ts-check
// Sets up an SDK whose spans and metrics stay in memory.

/** @param {any} modules of a line of the SDK @returns {import("./runs.mjs").Sdk} */
export function setUp({ api, AsyncLocalStorageContextManager, TracerProvider, InMemorySpanExporter, SimpleSpanProcessor, AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader }) {
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const spans = new InMemorySpanExporter();
  let open = 0;
  const counting = { onStart: () => void open++, onEnd: () => void open--, forceFlush: async () => {}, shutdown: async () => {} };
  const tracer = new TracerProvider({ spanProcessors: [counting, new SimpleSpanProcessor(spans)] }).getTracer("test");
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 });
  const meter = new MeterProvider({ readers: [reader] }).getMeter("test");
  return {
    api, tracer, meter,
    open: () => open,
    finished() {
      const all = [...spans.getFinishedSpans()];
      spans.reset();
      return all;
    },
    async metrics() {
      await reader.forceFlush();
      const points = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics.flatMap(({ descriptor, dataPoints }) => dataPoints.map((point) => ({ name: descriptor.name, ...point })))));
      exporter.reset();
      return points;
    },
  };
}
