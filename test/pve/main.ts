/** `make test-integration-proxmox`: the operator's steps against a real host; `--check-only` creates nothing. */
import { Command } from 'commander';
import { printLine, runProgram, UserError, type Log } from '../../deploy/dev/program.ts';
import { ProviderError } from '../../activities/providerError.ts';
import { checkHost } from './check.ts';
import { openHost, type Host } from './host.ts';
import { live } from './life.ts';
import { readSettings, type HostSettings } from './settings.ts';
import { findVms, sweep } from './sweep.ts';

/** A VM of a run that was made this recently may belong to one that goes on. */
const recentMs = 60 * 60_000;

const command = new Command('npm run test:host --')
  .description('The steps of the operator against the Proxmox VE that PROXMOX_* variables name.')
  .option('--check-only', 'only checks the host, creates nothing')
  .option('--sweep', 'only removes what killed runs left there');

runProgram(command, async (signal) => {
  const { checkOnly, sweep: sweepOnly } = command.opts<{ checkOnly?: boolean; sweep?: boolean }>();
  const settings = readSettings(process.env);
  const startedMs = Date.now();
  const log: Log = (line) => {
    printLine(`${((Date.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
  };
  const host = openHost(settings, log, signal);
  try {
    await checkHost(host);
    if (checkOnly === true) log('ok: the host is ready; nothing was created');
    else if (sweepOnly === true) await sweepAll(host);
    else await wholeLife(settings, host, signal);
  } catch (error) {
    // Its message names object, answer and remedy; where it was thrown helps nobody.
    throw error instanceof ProviderError ? new UserError(error.message) : error;
  } finally {
    await host.close();
  }
  return 0;
});

async function sweepAll(host: Host): Promise<void> {
  await sweep(host);
  host.log('ok: nothing of an integration test is left');
}

/** Cleans up behind itself, whatever happened and also on Ctrl-C. */
async function wholeLife(settings: HostSettings, host: Host, signal: AbortSignal): Promise<void> {
  const others = await findVms(host);
  const recent = others.find(({ createdAtMs }) => createdAtMs > Date.now() - recentMs);
  if (recent !== undefined) {
    throw new UserError(
      `VM ${recent.vmid} (${recent.name}) was made by an integration test within the last hour, which may go on. If it does not: npm run test:host -- --sweep`,
    );
  }
  if (others.length > 0) await sweep(host);
  try {
    await live(host, signal);
  } finally {
    const cleaner = openHost(settings, host.log, new AbortController().signal);
    try {
      await sweep({ ...cleaner, ref: host.ref }, host.ref.uid);
      host.log('nothing is left');
    } finally {
      await cleaner.close();
    }
  }
  host.log('ok: one VM was made, found again, changed and removed');
}
