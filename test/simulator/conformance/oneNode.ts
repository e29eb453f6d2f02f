import {
  historyOfTheTemplate,
  authentication,
  clones,
  uploads,
  configs,
  running,
} from './oneNodeFirst.ts';
import {
  locks,
  suspended,
  races,
  transport,
  inheritance,
  daemons,
  clients,
  leftovers,
  wholeLife,
  taskLists,
} from './oneNodeLater.ts';
import type { Session } from './replay.ts';

/** The one-node captures in the order of their time stamps, with what happened between them. */
export const oneNodeSessions: readonly Session[] = [
  {
    title: 'one node, the first half hour',
    fixture: 'fixture.yaml',
    // Rounds of pvestatd came at :08, :18, … in these captures.
    start: '2026-11-29T13:23:18Z',
    steps: [
      ...historyOfTheTemplate,
      ...authentication,
      ...clones,
      ...uploads,
      ...configs,
      ...running,
      ...locks,
      ...suspended,
      ...races,
      ...transport,
      ...inheritance,
      ...daemons,
      ...clients,
      ...leftovers,
      ...wholeLife,
    ],
  },
  {
    title: 'one node, task lists while cloning',
    fixture: 'fixture.yaml',
    start: '2026-11-29T14:40:06Z',
    steps: taskLists,
  },
];
