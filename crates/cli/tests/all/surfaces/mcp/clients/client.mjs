// The official TypeScript client of the stateless version.

import assert from 'node:assert/strict';
import { load, main, parameters } from './scenario.mjs';

const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const [transport, url, token] = process.argv.slice(2);

async function connect() {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: 'auto' } },
  );
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(
    transport === 'stdio'
      ? new StdioClientTransport(parameters())
      : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
  );
  assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  return client;
}

// Over HTTP this version cancels by closing the connection.
await main(connect, (client, params, options) => client.callTool(params, options));
