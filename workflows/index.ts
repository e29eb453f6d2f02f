/** The bundle's only entry: every workflow by its type. */
export { proxy } from './proxy.ts';
export { probes } from './probes.ts';
export { provider } from './provider.ts';
export { collectOrphans } from './collectOrphans.ts';
