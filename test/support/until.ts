import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until the condition holds. The deadline is generous: it only turns a hang into a message. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs = 60_000,
): Promise<void> {
  const end = Date.now() + deadlineMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited ${deadlineMs} ms in vain until ${what}`);
    await sleep(10);
  }
}
