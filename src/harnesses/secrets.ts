const SECRET_NAME = /KEY|TOKEN|SECRET|PASSW|CREDENTIAL/i;
/** Shorter values would match by chance. */
const MIN_SECRET_LENGTH = 8;
const MASK = '[secret]';

/** Shapes of keys as vendors print them, for text that may quote a key that we were never given. */
const KEY_SHAPES: readonly RegExp[] = [
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g,
  /\bBearer\s+[A-Za-z0-9._~+/-]{8,}=*/gi,
];

export interface Scrubber {
  /** Replaces the values of secret variables. Cheap: meant for every line of output. */
  readonly known: (text: string) => string;
  /** Replaces them and everything that has the shape of a key: for error messages. */
  readonly all: (text: string) => string;
}

/** @param env the environment that a program gets; variables named like a key, token or password are its secrets */
export function createScrubber(env: Readonly<Record<string, string>>): Scrubber {
  const values = Object.entries(env)
    .filter(([name, value]) => SECRET_NAME.test(name) && value.length >= MIN_SECRET_LENGTH)
    .map(([, value]) => value)
    // Longest first: one secret may contain another.
    .sort((a, b) => b.length - a.length);
  const known = (text: string): string => values.reduce((rest, value) => rest.replaceAll(value, MASK), text);
  const all = (text: string): string => KEY_SHAPES.reduce((rest, shape) => rest.replace(shape, MASK), known(text));
  return { known, all };
}
