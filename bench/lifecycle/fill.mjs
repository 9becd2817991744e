const MIB = 1024 * 1024;
const OBJECTS = 8192;

/**
 * Makes this process at least so large: one part in four objects of the JavaScript heap, the rest buffers, every page
 * written.
 * @param {number} mib resident size
 * @returns {unknown[]} what must stay referred to, about a MiB each
 */
export function fillTo(mib) {
  const held = [];
  while (process.memoryUsage.rss() < mib * MIB) held.push(held.length % 4 === 0 ? objects() : Buffer.alloc(MIB, 1));
  return held;
}

function objects() {
  // Some 128 bytes each.
  return Array.from({ length: OBJECTS }, (_, index) => ({
    index,
    half: index / 3,
    text: `object ${index}`,
    next: [index],
  }));
}
