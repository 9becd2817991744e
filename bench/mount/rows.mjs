// Rows of the mount benchmark: Bridle's value beside that of every peer.
import { percentile } from '../lib/statistics.mjs';

/**
 * The first peer stands where other benchmarks have their only one, the rest under `others`.
 * @template Sample
 * @param {string} id @param {string} unit
 * @param {{ ours: Sample[], peers: { name: string, samples?: Sample[], missing?: string }[] }} measured
 * @param {(samples: Sample[]) => number} measureOf
 */
export function compared(id, unit, { ours, peers }, measureOf) {
  const value = measureOf(ours);
  const [first, ...others] = peers.map(({ name, samples, missing }) => {
    if (missing !== undefined) return { peer: name, missing };
    const peerValue = measureOf(samples);
    return { peer: name, peerValue, ratio: value / peerValue };
  });
  return { id, value, unit, ...first, others };
}

/** Samples are what the client printed; medians of the rounds. */
export function rateRow(id, unit, measured) {
  const middle = (field) => (samples) =>
    percentile(
      samples.map((sample) => sample[field]),
      50,
    );
  const [p50, p99] = ['p50', 'p99'].map((field) => middle(field)(measured.ours));
  return { ...compared(id, unit, measured, middle('rate')), p50, p99, spreadUnit: 'us' };
}

/** Samples are lists of milliseconds; the value is their 99th percentile. */
export function slowestRow(id, measured) {
  const at = (percent) => (lists) => percentile(lists.flat(), percent);
  const p50 = at(50)(measured.ours);
  const row = compared(id, 'ms', measured, at(99));
  return { ...row, p50, p99: row.value };
}
