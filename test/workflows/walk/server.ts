/** What all walks share: programs, the bundle in scaled time, certificates, a page to probe. A Temporal server per walk. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  bundleWorkflowCode,
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
} from '@temporalio/worker';
import { findTool } from '../../../deploy/dev/tools.ts';
import { tracingPlugin } from '../../../worker/runtime/tracingPlugin.ts';
import { TestPage } from '../../support/testProxy.ts';
import { makeCa } from '../../support/tls.ts';
import { scaledBundle } from '../matrix/scaledTime.ts';
import { installationNames } from './operations.ts';

export interface Ground {
  /** Temporal's own server with a namespace for each installation. Tear it down. */
  startServer(): Promise<TestWorkflowEnvironment>;
  bundleFile: string;
  /** Folder for files of the walks. */
  dir: string;
  caFile: string;
  tls: { key: string; cert: string };
  /** What Proxies are probed with. */
  probeUrl: string;
  close(): Promise<void>;
}

/** Call once in a process. */
export async function prepareGround(): Promise<Ground> {
  const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter } },
    shutdownSignals: [],
  });
  const { path } = await findTool('temporal');
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url)),
    plugins: [tracingPlugin()],
    logger: new DefaultLogger('WARN'),
    webpackConfigHook: scaledBundle,
  });
  const ca = await makeCa();
  const bundleFile = join(ca.dir, 'workflows.js');
  writeFileSync(bundleFile, code);
  const page = new TestPage();
  const port = await page.start();
  const namespaces = installationNames.flatMap((name) => ['--namespace', name]);
  return {
    startServer: () =>
      TestWorkflowEnvironment.createLocal({
        server: {
          executable: { type: 'existing-path', path },
          extraArgs: ['--output=none', ...namespaces],
          log: { format: 'json', level: 'never' },
        },
        client: { plugins: [tracingPlugin()] },
      }),
    bundleFile,
    dir: ca.dir,
    caFile: ca.caFile,
    tls: await ca.issue(['127.0.0.1']),
    probeUrl: `http://127.0.0.1:${port}/generate_204`,
    close: async () => {
      await page.stop();
      rmSync(ca.dir, { recursive: true });
    },
  };
}
