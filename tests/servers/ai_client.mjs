// @ai-sdk/mcp, an implementation of its own, driven by a plan.
import { answer, carryOut, plan, said, take } from './plan.mjs';

const { createMCPClient, ElicitationRequestSchema } = await take('@ai-sdk/mcp/dist/index.js');
const { StdioMCPTransport } = await take('@ai-sdk/mcp/dist/mcp-stdio/index.js');

let client;
await carryOut({
  connect: async () => {
    const transport = plan.stdio
      ? new StdioMCPTransport({ ...plan.stdio, stderr: 'ignore' })
      : { type: 'http', url: plan.url, headers: plan.headers ?? {} };
    client = await createMCPClient({
      transport,
      clientName: 'yet-another-client',
      protocolVersionDiscovery: plan.mode !== 'legacy',
      capabilities: plan.answers ? { elicitation: {} } : {},
      onUncaughtError: () => {},
    });
    if (plan.answers) client.onElicitationRequest(ElicitationRequestSchema, async (request) => answer(request));
    return { server: client.serverInfo, protocol: client.initializeResult?.protocolVersion };
  },
  list: async () => await client.listTools(),
  call: async ({ name, arguments: given }) => ({ result: await client.callTool({ name, arguments: given }) }),
  close: async () => {
    await client.close();
    return {};
  },
});
said({ step: 'end' });
process.exit(0);
