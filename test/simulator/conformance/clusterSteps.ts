import type { Lab } from './lab.ts';
import type { Step } from './replay.ts';

/** VMs of the first node. */
export const ONE = '/nodes/pve1/qemu';
/** VMs of the second node. */
export const TWO = '/nodes/pve2/qemu';
/** Calls of the administrator's token. */
export const ADMIN = { token: 'admin@pve!tok' };
/** What the captures' authors wrote into VMs of theirs. */
export const DESCRIPTION = 'managed-by: egress-operator';

/** A set-up step; the text says what was done between two exchanges. */
export function setup(text: string, run: (lab: Lab) => Promise<unknown>): Step {
  return {
    setup: text,
    run: async (lab) => {
      await run(lab);
    },
  };
}

/** Nothing happens until this time of the day. */
export const at = (time: string): Step =>
  setup(`until ${time}`, (lab) => lab.clock.advanceTo(Date.parse(`2026-11-29T${time}Z`)));

type Params = Readonly<Record<string, string | number>>;

/** A task that nobody captured. */
export const task = (text: string, method: string, path: string, params: Params = {}): Step =>
  setup(text, (lab) => lab.task(method, path, params));

/** The same, by the administrator. */
export const asAdmin = (text: string, path: string, params: Params): Step =>
  setup(text, (lab) => lab.task('POST', path, params, ADMIN));

/** A config write that nobody captured. */
export const put = (path: string, params: Params): Step =>
  setup(`PUT ${path}`, (lab) => lab.call('PUT', `${path}/config`, params));

/** Keys written behind the API's back. */
export const edit = (
  text: string,
  vmid: number,
  changes: Readonly<Record<string, string | null>>,
): Step =>
  setup(text, async (lab) => {
    lab.simulator.editConfig(vmid, changes);
    await Promise.resolve();
  });

/** Something happens to a node. */
export const node = (
  text: string,
  name: string,
  change: Parameters<Lab['simulator']['setNode']>[1],
): Step =>
  setup(text, async (lab) => {
    lab.simulator.setNode(name, change);
    await Promise.resolve();
  });
