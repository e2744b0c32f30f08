import { newAgent } from "../agent.js";

export const dynamic = "force-dynamic";

/** Runs an agent on the server. */
export async function GET() {
  const { text, error } = await newAgent().prompt("What is 17 + 25?");
  return new Response(error ? error.message : text);
}
