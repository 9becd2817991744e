import type { Command } from 'commander';
import type { Console } from '../console.js';
import type { Finish } from '../finish.js';

const EXIT_INTERRUPTED = 130;

export function registerDemo(program: Command, console: Console, finish: Finish): void {
  program
    .command('demo')
    .summary('show one request on its way')
    .description('Mounts in a temporary place, hands one request in, shows what happens, and leaves nothing behind.')
    .addHelpText('after', '\nExamples:\n  bridle demo')
    .action(async () => {
      const stop = new AbortController();
      const interrupt = () => stop.abort();
      process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
      try {
        // Loaded here: no client command needs the native part.
        const { demo } = await import('../demo/demo.js');
        await demo(console, stop.signal);
      } catch (error) {
        if (!stop.signal.aborted) throw error;
      } finally {
        process.removeListener('SIGINT', interrupt).removeListener('SIGTERM', interrupt);
      }
      if (stop.signal.aborted) finish(EXIT_INTERRUPTED);
    });
}
