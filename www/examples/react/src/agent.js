import { Agent, openaiCompatible, tool } from "turnwheel";
const rename = tool({
    name: "rename_page",
    description: "Gives the page another title",
    parameters: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
    requiresApproval: true,
    execute: ({ title }) => {
        document.title = title;
        return `The page is called ${title} now.`;
    },
});
/** Any model works. This one runs in Ollama on this machine: no key is needed, and nothing leaves the machine. */
export const makeAgent = () => new Agent({ model: openaiCompatible("qwen3:4b", { server: "ollama" }), systemPrompt: "Be brief.", tools: [rename] });
