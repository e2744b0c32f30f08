/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { JsonSchema, ToolDefinition } from "./index.js";

/**
 * What a page says of its tool. The page's own claims.
 *
 * @example
 * const hints: PageAnnotations = { readOnlyHint: true };
 */
export interface PageAnnotations { readOnlyHint?: boolean; untrustedContentHint?: boolean; consequentialHint?: boolean }

/**
 * A tool as a page registered it.
 *
 * @example
 * const isQuick = ({ annotations }: PageTool) => annotations?.readOnlyHint === true;
 */
export interface PageTool { name: string; title?: string; description: string; inputSchema?: JsonSchema; origin: string; annotations?: PageAnnotations }

/**
 * Options of `pageTools`.
 *
 * @example
 * const options: PageToolsOptions = { approval: "always", only: ["search"] };
 */
export interface PageToolsOptions {
  /** Frames of other origins whose tools are wanted too. Default: this origin's. */
  fromOrigins?: string[];
  /** Which tools to use, by name or by function. Default: all. */
  only?: string[] | ((tool: PageTool) => boolean);
  /** Put before every name, followed by `__`. */
  prefix?: string;
  /**
   * Which tools need approval, by the page's own hints. `"writes"` (default): all but those that say that they only read, and
   * all that say that they have consequences. `"consequential"`: only the latter. For frames that you do not trust, use
   * `"always"`.
   */
  approval?: "writes" | "consequential" | "always" | "never" | ((tool: PageTool) => boolean);
  /** How many milliseconds a call may take. Default: `timeouts.toolMs` of the agent. */
  timeoutMs?: number;
  /** In bytes. A longer result is cut, with a note. */
  maxResultBytes?: number;
  /** Called when a change could not be taken over, and for each tool that is left out. Default: the console. */
  onError?: (error: unknown) => void;
}

/**
 * The tools of a page, which may change. Iterate it to get the tools.
 *
 * @example
 * const page: PageTools = await pageTools();
 * page.onChange((tools) => void (agent.tools = tools));
 */
export interface PageTools extends Iterable<ToolDefinition> {
  /** The tools that the page has now. A tool that did not change is the same object. */
  readonly tools: ToolDefinition[];
  /** Calls the listener with the new list when it changed. Returns a function that unsubscribes. */
  onChange(listener: (tools: ToolDefinition[]) => void): () => void;
  refresh(): Promise<void>;
  /** Stops listening to the page. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The tools that this page and its frames registered with WebMCP, as tools of an agent. Experimental: the browsers' interface
 * still changes.
 *
 * @example
 * const page = await pageTools();
 * const agent = new Agent({ model, tools: [...page] });
 */
export function pageTools(options?: PageToolsOptions): Promise<PageTools>;
