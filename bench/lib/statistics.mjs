/**
 * The value below which `percent` of the samples lie (nearest rank).
 * @param {readonly number[]} samples
 * @param {number} percent
 */
export function percentile(samples, percent) {
  const sorted = Float64Array.from(samples).sort();
  const rank = Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1);
  return sorted[rank] ?? Number.NaN;
}
