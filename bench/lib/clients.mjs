// Client processes that start together and report how long each of their requests took.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLIENT = fileURLToPath(new URL('client.mjs', import.meta.url));

/**
 * @param {{ mode: 'mount' | 'bare', directory: string, clients: number, requests: number }} load
 *   `requests` is the sum over all clients
 * @returns {Promise<{ rate: number, latencies: number[] }>} requests a second, milliseconds
 */
export async function runClients({ mode, directory, clients, requests }) {
  const each = Math.ceil(requests / clients);
  const all = Array.from({ length: clients }, () => new Client([mode, directory, String(each)]));
  await Promise.all(all.map((client) => client.line()));
  const started = performance.now();
  for (const client of all) client.go();
  const results = await Promise.all(all.map(async (client) => JSON.parse(await client.line())));
  const seconds = (performance.now() - started) / 1000;
  const latencies = results.flat();
  return { rate: latencies.length / seconds, latencies };
}

class Client {
  #child;
  #lines;

  constructor(words) {
    this.#child = spawn(process.execPath, [CLIENT, ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async line() {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('a client ended before it had reported');
    return value;
  }

  go() {
    this.#child.stdin.end('go\n');
  }
}
