/** What the Proxy object asks for right now. */
import type { Proxy } from '../../api/proxy.ts';
import type { StepDeps } from '../deps.ts';
import { readCloudInit } from '../kubernetes/cloudInit.ts';
import { specHash } from '../vm/specHash.ts';

/** Cloud-init, and the hash of the spec it belongs to. The content goes nowhere but into hash and seed. */
export interface WantedSpec {
  cloudInit: Uint8Array | null;
  specHash: string;
}

/** Throws Transient `CloudInitUnavailable` while the Secret or its key is missing. */
export async function wantedSpec(deps: StepDeps, proxy: Proxy): Promise<WantedSpec> {
  const { mode, provider, placement } = proxy.spec;
  const { region, zone, machineType, image } = placement ?? {};
  const cloudInit = await readCloudInit(deps.kubernetes, proxy);
  const hash = specHash({
    mode,
    provider: provider ?? null,
    placement: {
      region: region ?? null,
      zone: zone ?? null,
      machineType: machineType ?? null,
      image: image ?? null,
    },
    cloudInit,
  });
  return { cloudInit, specHash: hash };
}
