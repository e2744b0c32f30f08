// What only the newest compiler infers: a JSON Schema that is written in place, in a record. Older ones say `any`.

import { Agent, scripted } from "turnwheel";

declare function is<T>(value: T): void;
type Same<X, Y> = (<T>() => T extends X ? 1 : 2) extends <T>() => T extends Y ? 1 : 2 ? true : false;
const model = scripted([]);
new Agent({
  model,
  tools: { add: { description: "", parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a"] }, execute: ({ a }) => { is<Same<typeof a, number>>(true); return a; } } },
}).subscribe((event) => {
  if (event.type === "tool_execution_start" && event.toolName === "add") is<Same<typeof event.arguments.a, number>>(true);
});
// @ts-expect-error the schema has no such member
new Agent({ model, tools: { add: { description: "", parameters: { type: "object", properties: { a: { type: "number" } } }, execute: ({ b }) => b } } });
