// Calls the tools of an MCP server with the official TypeScript SDK, as the story in a file tells it.
// Prints a JSON line about the server, then one for each step.
const fs = require("node:fs");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const story = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));

function server() {
  if (story.url) {
    const headers = { Authorization: `Bearer ${story.token}` };
    return new StreamableHTTPClientTransport(new URL(story.url), { requestInit: { headers } });
  }
  return new StdioClientTransport({ command: story.command, args: story.args, env: story.env });
}

async function call(client, step) {
  const options = { timeout: step.timeoutMs ?? 45_000 };
  try {
    const result = await client.callTool({ name: step.tool, arguments: step.arguments }, undefined, options);
    const texts = result.content.filter((block) => block.type === "text").map((block) => block.text);
    return { isError: result.isError ?? false, value: result.structuredContent ?? null, text: texts.join("\n") };
  } catch (error) {
    return { failed: String(error) };
  }
}

async function main() {
  const client = new Client({ name: "story", version: "1" });
  await client.connect(server());
  const { tools } = await client.listTools();
  console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), version: client.getServerVersion().version }));
  for (const step of story.steps) {
    if (step.write) fs.writeFileSync(step.write, "");
    let answer = await call(client, step);
    for (let left = step.tries ?? 0; left > 0 && answer.value?.status !== step.until; left--) {
      answer = await call(client, step);
    }
    console.log(JSON.stringify(answer));
  }
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
