// Bridle and its peers. A peer that cannot take part says why in every row instead of being left out.
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compile } from '../lib/native.mjs';
import { FUSE_NATIVE, fetchFuseNative } from './fuse-native.mjs';
import { PINNED, Server } from './server.mjs';

const OURS = 'bridle';
const LONG_S = 3600;
// It cannot take back what the kernel holds, so its own default is as long as it dares.
const FUSE_NATIVE_S = 1;

const script = (name) => [process.execPath, fileURLToPath(new URL(`${name}.mjs`, import.meta.url))];

export class Competitors {
  #directory;
  #client;
  #all;
  #servers = [];
  #started = 0;

  /** @param {string} directory with what `makeBacking` made @param {(message: string) => void} say */
  static async prepare(directory, say) {
    const [server, client] = await Promise.all([
      compile('mount-server', directory, ['fuse3']),
      compile('mount-client', directory),
    ]);
    const packages = join(directory, 'packages');
    const fuseNative = { name: FUSE_NATIVE, words: script('serve-fuse-native'), last: packages, cacheS: FUSE_NATIVE_S };
    try {
      say(`npm fetches ${FUSE_NATIVE}`);
      fuseNative.env = await fetchFuseNative(packages);
    } catch (error) {
      fuseNative.missing = reasonOf(error);
      say(`${FUSE_NATIVE} cannot be had: ${fuseNative.missing}`);
    }
    return new Competitors(directory, client, [
      { name: OURS, words: script('serve-bridle'), cacheS: LONG_S },
      { name: 'C libfuse', words: [server], cacheS: LONG_S },
      fuseNative,
    ]);
  }

  constructor(directory, client, all) {
    this.#directory = directory;
    this.#client = client;
    this.#all = all;
  }

  /**
   * All servers at once, while `action` runs.
   * @template Result
   * @param {{ pinned?: boolean, cached?: boolean, journal?: boolean }} options
   *   `cached`: the kernel may keep names and attributes for as long as the server is used to; else not at all
   * @param {() => Promise<Result>} action
   */
  async serve({ pinned = false, cached = false, journal = false }, action) {
    try {
      for (const competitor of this.#all) {
        await this.#attempt(competitor, async () => {
          const mountpoint = join(this.#directory, `mount-${this.#started++}`);
          const words = [...competitor.words, mountpoint, this.#directory, String(cached ? competitor.cacheS : 0)];
          if (competitor.last !== undefined) words.push(competitor.last);
          if (journal && competitor.name === OURS) words.push(await this.#fresh(`state-${this.#started}`));
          const order = { words: pinned ? [...PINNED, ...words] : words, mountpoint, env: competitor.env };
          competitor.server = await Server.start(order);
          this.#servers.push(competitor.server);
        });
      }
      return await action();
    } finally {
      for (const server of this.#servers.splice(0)) await server.stop();
    }
  }

  /**
   * Measures one after the other, in so many rounds, so that what else the machine does meets all of them.
   * @template Sample
   * @param {number} rounds
   * @param {(server: Server, name: string) => Promise<Sample>} measure
   * @returns {Promise<{ ours: Sample[], peers: { name: string, samples?: Sample[], missing?: string }[] }>}
   */
  async inTurns(rounds, measure) {
    const samples = this.#all.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, competitor] of this.#all.entries()) {
        await this.#attempt(competitor, async () => {
          samples[index].push(await measure(competitor.server, competitor.name));
        });
      }
    }
    const peers = this.#all.map(({ name, missing }, index) =>
      missing === undefined ? { name, samples: samples[index] } : { name, missing },
    );
    return { ours: samples[0], peers: peers.slice(1) };
  }

  /**
   * @param {{ operation: string, directory: string, seconds: number, clients?: number, pinned?: boolean }} load
   * @returns {Promise<any>} what bench/native/mount-client.c printed
   */
  async client({ operation, directory, seconds, clients = 1, pinned = false }) {
    const words = [this.#client, operation, directory, String(seconds), String(clients)];
    const [program, ...args] = pinned ? [...PINNED, ...words] : words;
    const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 64 * 1024 * 1024 });
    return JSON.parse(stdout);
  }

  async #fresh(name) {
    const path = join(this.#directory, name);
    await mkdir(path);
    return path;
  }

  async #attempt(competitor, action) {
    if (competitor.missing !== undefined) return;
    try {
      await action();
    } catch (error) {
      if (competitor.name !== FUSE_NATIVE) throw error;
      competitor.missing = reasonOf(error);
    }
  }
}

function reasonOf(error) {
  const text = error.stderr?.trim() || error.message;
  return text.split('\n').slice(0, 3).join('; ');
}
