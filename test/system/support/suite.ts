/** Tests that share one stack: started before the first, ended after the last; its logs are kept when one failed. */
import { after, before, describe, test } from 'node:test';
import { endOfLog, startStack, type SystemStack, type SystemStackOptions } from './stack.ts';

export interface SuiteOptions {
  stack?: SystemStackOptions;
  /** Stories that run at the same time; 1 where they take processes away from each other. */
  concurrency?: number;
  /** What must hold once all stories are over. */
  atEnd?: (stack: SystemStack) => Promise<void>;
}

export type Story = (title: string, run: (stack: SystemStack) => Promise<void>) => void;

/** A `describe` whose tests are stories on one stack; a failure shows the ends of worker's and controller's logs. */
export function onOneStack(
  title: string,
  { stack: options = {}, concurrency = 1, atEnd }: SuiteOptions,
  define: (story: Story) => void,
): void {
  describe(title, { concurrency }, () => {
    let started: SystemStack | undefined;
    let failed = false;
    const running = (): SystemStack => {
      if (started === undefined) throw new Error('the stack did not start');
      return started;
    };
    const watched = async (
      name: string,
      run: (stack: SystemStack) => Promise<void>,
    ): Promise<void> => {
      try {
        await run(running());
      } catch (error) {
        failed = true;
        process.stderr.write(`«${name}» failed\n${endsOfLogs(running())}\n`);
        throw error;
      }
    };
    before(async () => {
      started = await startStack(options);
    });
    after(async () => {
      try {
        if (atEnd !== undefined && !failed) await watched('at the end', atEnd);
      } finally {
        await started?.stop(failed);
      }
    });
    define((name, run) => {
      test(name, () => watched(name, run));
    });
  });
}

/** Stories that go on where the one before ended: after one that failed none is told. */
export function inOrder(story: Story): Story {
  let broken = false;
  return (title, run) => {
    story(title, async (stack) => {
      if (broken) throw new Error('an earlier chapter failed');
      broken = true;
      await run(stack);
      broken = false;
    });
  };
}

function endsOfLogs(stack: SystemStack): string {
  return (['worker', 'controller'] as const)
    .map((name) => `The end of ${name}.log:\n${endOfLog(stack, name)}`)
    .join('\n');
}
