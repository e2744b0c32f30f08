// What Prometheus reads: https://prometheus.io/docs/instrumenting/exposition_formats/

import { monitorEventLoopDelay } from "node:perf_hooks";

const delay = monitorEventLoopDelay({ resolution: 20 });
delay.enable();

export function metrics({ agents, running, listeners, claimed, takenOver, handedOver, lost, passedOn }) {
  const lines = [
    gauge("turnwheel_agents", "Agents that this process has", agents),
    gauge("turnwheel_agents_running", "Those of them with a run", running),
    gauge("turnwheel_listeners", "Open event streams", listeners),
    counter("turnwheel_claims_total", "Agents claimed", claimed),
    counter("turnwheel_takeovers_total", "Runs of other processes that went on here", takenOver),
    counter("turnwheel_handovers_total", "Agents handed over", handedOver),
    counter("turnwheel_leases_lost_total", "Leases lost", lost),
    counter("turnwheel_passed_on_total", "Requests for agents of other processes", passedOn),
    gauge("process_resident_memory_bytes", "Memory of the process", process.memoryUsage.rss()),
    gauge("nodejs_eventloop_lag_p99_seconds", "How late timers are", (delay.percentile(99) || 0) / 1e9),
  ];
  return new Response(lines.join(""), { headers: { "content-type": "text/plain; version=0.0.4" } });
}

const line = (type) => (name, help, value) => `# HELP ${name} ${help}.\n# TYPE ${name} ${type}\n${name} ${value}\n`;
const gauge = line("gauge");
const counter = line("counter");
