import { setTimeout as sleep } from 'node:timers/promises';

/** Waits, or returns at once when the signal is aborted: callers look at the signal themselves. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
