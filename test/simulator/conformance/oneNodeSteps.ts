import type { Lab } from './lab.ts';
import type { Step } from './replay.ts';

/** Where the VMs of these captures are. */
export const VM = '/nodes/pve1/qemu';
/** A seed as the second CD-ROM drive names it. */
export const SEED = 'proxy-seeds:iso/seed-101.iso,media=cdrom';

/** A set-up step; the text says what the captures' authors did between two exchanges. */
export function setup(text: string, run: (lab: Lab) => Promise<void>): Step {
  return { setup: text, run };
}

/** Keys written behind the API's back. */
export const edit = (
  text: string,
  vmid: number,
  changes: Readonly<Record<string, string | null>>,
): Step =>
  setup(text, (lab) => {
    lab.simulator.editConfig(vmid, changes);
    return Promise.resolve();
  });

/** A config write that nobody captured. */
export const put = (vmid: number, params: Readonly<Record<string, string | number>>): Step =>
  setup(`PUT config of ${vmid}`, async (lab) => {
    await lab.call('PUT', `${VM}/${vmid}/config`, params);
  });

/** Nothing happens until this time of the day. */
export const at = (time: string): Step =>
  setup(`until ${time}`, (lab) => lab.clock.advanceTo(Date.parse(`2026-11-29T${time}Z`)));

/** A start or stop that nobody captured. */
export const power = (action: string, vmid: number): Step =>
  setup(`${action} ${vmid}`, async (lab) => {
    await lab.task('POST', `${VM}/${vmid}/status/${action}`);
  });

/** A clone that nobody captured. */
export const clone = (
  newid: number,
  params: Readonly<Record<string, string | number>> = {},
): Step =>
  setup(`clone ${newid}`, async (lab) => {
    await lab.task('POST', `${VM}/9001/clone`, { newid, ...params });
  });

/** A destroy that nobody captured. */
export const destroy = (vmid: number): Step =>
  setup(`destroy ${vmid}`, async (lab) => {
    await lab.task('DELETE', `${VM}/${vmid}`, { purge: 1 });
  });
