import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { startBrowser, type Browser } from './browser.ts';
import { UserError, printLine, runProgram } from './program.ts';
import { scenes, statusOf, type Scene } from './screenshotScenes.ts';
import { checkout } from './stackFolder.ts';
import { startStack, type Stack } from './stack.ts';
import { temporalNamespace } from './temporalServer.ts';

/** Fast, since nobody watches. */
const timeScale = 0.1;
/** The page, and what of it is about the workflow: without navigation and namespace. */
const size = { width: 1440, height: 1100 };
const part = { x: 256, y: 48, width: 1184 };
/** A page of documentation loads all of them. */
const maxBytes = 200_000;

/** `npm run screenshots`: makes the pictures of docs/images anew, on a stack of their own. */
const command = new Command('npm run screenshots').description(
  'Makes the pictures of docs/images anew, on a stack of its own; needs Chromium.',
);

runProgram(command, async (signal) => {
  const stack = await startStack({
    name: 'screenshots',
    timeScale,
    temporalDb: 'memory',
    log: printLine,
    signal,
  });
  try {
    const browser = await startBrowser();
    try {
      await Promise.race([takeAll(stack, browser, signal), stack.failure]);
    } finally {
      await browser.close();
    }
  } finally {
    await stack.stop();
  }
  return 0;
});

async function takeAll(stack: Stack, browser: Browser, signal: AbortSignal): Promise<void> {
  const folder = join(checkout, 'docs/images');
  mkdirSync(folder, { recursive: true });
  for (const scene of scenes) {
    await scene.prepare(stack, signal);
    const picture = await take(stack, browser, scene, signal);
    if (picture.length > maxBytes)
      throw new UserError(
        `${scene.file} has ${picture.length} bytes, ${maxBytes} at most are wanted.`,
      );
    writeFileSync(join(folder, scene.file), picture);
    printLine(`docs/images/${scene.file}: ${Math.round(picture.length / 1_024)} KiB`);
  }
}

async function take(
  stack: Stack,
  browser: Browser,
  { proxy, shows, height }: Scene,
  signal: AbortSignal,
): Promise<Buffer> {
  const { workflowID } = await statusOf(stack, proxy, signal);
  const { runId } = await stack.temporal.workflow.getHandle(workflowID).describe();
  const ui = `http://127.0.0.1:${stack.ports.temporalUi}/namespaces/${temporalNamespace}`;
  const page = await browser.open(`${ui}/workflows/${workflowID}/${runId}/user-metadata`, size);
  for (const text of shows)
    await page.until(`«${text}»`, `${shownText}.includes(${JSON.stringify(text)})`);
  return await page.picture({ ...part, height });
}

/** The UI shows Markdown in frames of its own. */
const shownText = `[document, ...[...document.querySelectorAll('iframe')].map((frame) => frame.contentDocument)]
  .map((one) => one?.body?.innerText ?? '').join(' ')`;
