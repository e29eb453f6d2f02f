/** The workflow bundle: one entry, and the tracing interceptors that are on from the first history. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  bundleWorkflowCode,
  DefaultLogger,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { Command } from 'commander';
import { tracingPlugin } from './runtime/tracingPlugin.ts';

/** Bundles `workflows/index.ts`. Fails when a workflow reaches for anything that is not deterministic. */
export async function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)),
    plugins: [tracingPlugin()],
    // Webpack's pages of module names help nobody; its errors are thrown.
    logger: new DefaultLogger('WARN'),
  });
}

/** `npm run bundle -- [<file>]`: what an image ships, so that no container bundles at its start. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const command = new Command('npm run bundle --')
    .description('Bundles the workflows, as an image ships them.')
    .argument('[file]', 'where to', '.cache/workflows.js')
    .parse();
  const [target = ''] = command.processedArgs.map(String);
  const { code } = await bundleWorkflows();
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, code);
  process.stdout.write(`${target}: ${Math.round(code.length / 1024)} KiB\n`);
}
