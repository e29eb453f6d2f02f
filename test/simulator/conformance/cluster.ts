import { history, proxying, targets, migrations } from './clusterFirst.ts';
import { nodeDown, noQuorum, cutOff, highAvailability } from './clusterLater.ts';
import type { Session } from './replay.ts';

/** The captures of the two-node cluster in the order of their time stamps. */
export const clusterSessions: readonly Session[] = [
  {
    title: 'two nodes',
    fixture: 'fixture-cluster.yaml',
    // Rounds of pvestatd came at :x5.5.
    start: '2026-11-29T14:49:35.500Z',
    steps: [
      ...history,
      ...proxying,
      ...targets,
      ...migrations,
      ...nodeDown,
      ...noQuorum,
      ...cutOff,
      ...highAvailability,
    ],
  },
];
