// @modelcontextprotocol/client, driven by a plan.
import { answer, carryOut, plan, said, take } from './plan.mjs';

const { Client, StreamableHTTPClientTransport } = await take('@modelcontextprotocol/client/dist/index.mjs');
const { StdioClientTransport } = await take('@modelcontextprotocol/client/dist/stdio.mjs');

const client = new Client(
  { name: 'another-client', version: '1.0.0' },
  {
    capabilities: plan.answers ? { elicitation: { form: {} } } : {},
    versionNegotiation: { mode: plan.mode ?? 'legacy' },
  },
);
if (plan.answers) client.setRequestHandler('elicitation/create', async (request) => answer(request));
const transport = plan.stdio
  ? new StdioClientTransport({ ...plan.stdio, stderr: 'ignore' })
  : new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: plan.headers ?? {} } });

async function call({ name, arguments: given, cancelled }) {
  const progress = [];
  const stop = new AbortController();
  const onprogress = (told) => {
    progress.push(told.message ?? `${told.progress}`);
    if (cancelled) stop.abort('enough');
  };
  const result = await client.callTool({ name, arguments: given }, { onprogress, signal: stop.signal, timeout: 90_000 });
  return { result, progress };
}

await carryOut({
  connect: async () => {
    await client.connect(transport);
    return { server: client.getServerVersion(), protocol: client.getNegotiatedProtocolVersion?.() };
  },
  list: async () => await client.listTools(),
  call,
  together: async (calls) => ({ results: await Promise.all(calls.map(call)) }),
  close: async () => {
    await client.close();
    return {};
  },
});
said({ step: 'end' });
process.exit(0);
