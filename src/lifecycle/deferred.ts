/** A promise that is settled from outside, once; later calls change nothing. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;

  constructor() {
    let settle: (value: T) => void = () => undefined;
    this.promise = new Promise((resolve) => {
      settle = resolve;
    });
    this.resolve = settle;
  }
}

/** The promise's value, or `undefined` when it takes longer than `ms` milliseconds. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
