import type { Session } from './replay.ts';

export const clusterSessions: readonly Session[] = [];
