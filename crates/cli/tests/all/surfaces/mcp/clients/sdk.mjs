// The official TypeScript client of the versions with a handshake.

import { load, main, parameters } from './scenario.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const [transport, url, token] = process.argv.slice(2);

async function connect() {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(
    transport === 'stdio'
      ? new StdioClientTransport(parameters())
      : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
  );
  return client;
}

await main(connect, (client, params, options) => client.callTool(params, undefined, options));
