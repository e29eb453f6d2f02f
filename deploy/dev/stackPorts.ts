import { claimPort } from './ports.ts';
import type { ClaimedPort } from './ports.ts';

/** Every port of a stack, by what listens there. */
export interface StackPorts {
  etcd: number;
  etcdPeer: number;
  apiserver: number;
  temporal: number;
  temporalUi: number;
  temporalHttp: number;
  temporalMetrics: number;
  simulator: number;
  simulatorAdmin: number;
  controllerMetrics: number;
  controllerHealth: number;
  discovery: number;
  workerMetrics: number;
  workerHealth: number;
  workerSdkMetrics: number;
  pages: number;
}

export interface ClaimedStackPorts {
  ports: StackPorts;
  release(): void;
}

/** Claims all of them; `release` gives them back. Throws UserError when there are not enough. */
export async function claimStackPorts(): Promise<ClaimedStackPorts> {
  const claims: ClaimedPort[] = [];
  const release = (): void => {
    for (const claim of claims) claim.release();
  };
  const port = async (): Promise<number> => {
    const claim = await claimPort();
    claims.push(claim);
    return claim.port;
  };
  try {
    const ports: StackPorts = {
      etcd: await port(),
      etcdPeer: await port(),
      apiserver: await port(),
      temporal: await port(),
      temporalUi: await port(),
      temporalHttp: await port(),
      temporalMetrics: await port(),
      simulator: await port(),
      simulatorAdmin: await port(),
      controllerMetrics: await port(),
      controllerHealth: await port(),
      discovery: await port(),
      workerMetrics: await port(),
      workerHealth: await port(),
      workerSdkMetrics: await port(),
      pages: await port(),
    };
    return { ports, release };
  } catch (error) {
    release();
    throw error;
  }
}
