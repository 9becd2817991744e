#!/usr/bin/env node
// npm run bench -- NAME [--json]: runs one benchmark and prints its rows.
import { execFileSync } from 'node:child_process';
import { cpus, release } from 'node:os';
import { lifecycle } from './lifecycle.mjs';
import { mount } from './mount.mjs';
import { request } from './request.mjs';

const BENCHMARKS = { lifecycle, mount, request };

const words = process.argv.slice(2);
const json = words.includes('--json');
const [name] = words.filter((word) => !word.startsWith('--'));
const benchmark = BENCHMARKS[name];
if (benchmark === undefined) {
  console.error(`usage: npm run bench -- NAME [--json]\nbenchmarks: ${Object.keys(BENCHMARKS).join(', ')}`);
  process.exit(64);
}

const rows = await benchmark((message) => console.error(message));
const result = { bench: name, commit: commit(), machine: machine(), rows };
console.log(json ? JSON.stringify(result, null, 2) : textOf(result));

function commit() {
  const git = (...args) => execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    return git('rev-parse', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '-dirty');
  } catch {
    // A source tree without its repository, or one without a commit.
    return null;
  }
}

function machine() {
  const [cpu] = cpus();
  return { cpu: cpu?.model ?? 'unknown', cpus: cpus().length, kernel: release(), node: process.version };
}

function textOf({ rows: all }) {
  const number = (value) => (value === undefined ? '' : Number(value.toPrecision(4)).toString());
  const width = Math.max(...all.map(({ id }) => id.length));
  const lines = all.map((row) => {
    const spread =
      row.p50 === undefined ? '' : `  p50 ${number(row.p50)}  p99 ${number(row.p99)} ${row.spreadUnit ?? ''}`;
    const peers = row.peer === undefined ? [] : [row, ...(row.others ?? [])];
    const text = peers.map(({ peer, missing, peerValue, ratio }) =>
      missing === undefined ? `  ${peer}: ${number(peerValue)}  ratio ${number(ratio)}` : `  ${peer}: ${missing}`,
    );
    return `${row.id.padEnd(width)} ${number(row.value)} ${row.unit}${spread}${text.join('')}`;
  });
  return lines.join('\n');
}
