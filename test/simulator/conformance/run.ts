import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificates } from '../certificates.ts';
import { capturedAt, readCaptures, type Capture } from './captures.ts';
import { clusterSessions } from './cluster.ts';
import { EXEMPT } from './exempt.ts';
import { oneNodeSessions } from './oneNode.ts';
import { isClusterCapture, nameOf, placeAll } from './place.ts';
import { replaySession, type Session, type Verdict } from './replay.ts';

const OWN_FIXTURES = new URL('../../../testdata/pve/9.2', import.meta.url).pathname;

/**
 * Replays every exchange of a folder of captures: in the sessions where their history is known, on the plain fixture
 * where it is not. One verdict for each file.
 */
export async function runConformance(folder: string, tls: Certificates): Promise<Verdict[]> {
  const captures = readCaptures(folder);
  const isExempt = (name: string): boolean => EXEMPT[name] !== undefined;
  const { sessions, unplaced } = placeAll(
    [...oneNodeSessions, ...clusterSessions],
    captures,
    isExempt,
  );
  const verdicts: Verdict[] = [];
  for (const session of [...sessions, ...plainSessions(unplaced)]) {
    const fixture = fixturePath(folder, session.fixture);
    if (!session.steps.some((step) => captures.has(nameOf(step) ?? ''))) continue;
    verdicts.push(...(await replaySession({ ...session, fixture }, captures, tls)));
  }
  return [...captures.keys()].map((name) => verdictOn(name, verdicts));
}

/** A folder may bring its own fixtures; captures alone are held against those of testdata. */
function fixturePath(folder: string, name: string): string {
  const own = join(folder, name);
  return existsSync(own) ? own : join(OWN_FIXTURES, name);
}

function verdictOn(name: string, verdicts: readonly Verdict[]): Verdict {
  const reason = EXEMPT[name];
  if (reason !== undefined) return { name, verdict: 'exempt', reason };
  return (
    verdicts.find((verdict) => verdict.name === name) ?? {
      name,
      verdict: 'differ',
      differences: ['not replayed'],
    }
  );
}

/** Exchanges without a known history, on the plain fixture that fits their nodes. */
function plainSessions(rest: readonly Capture[]): Session[] {
  const cluster = rest.filter(
    (capture) => isClusterCapture(capture) || capture.name.startsWith('30-'),
  );
  const single = rest.filter((capture) => !cluster.includes(capture));
  return [
    plainSession('one node', 'fixture.yaml', single),
    plainSession('two nodes', 'fixture-cluster.yaml', cluster),
  ];
}

function plainSession(title: string, fixture: string, members: readonly Capture[]): Session {
  const times = members.map(capturedAt).filter((time) => time !== null);
  const first = times.length === 0 ? Date.now() : Math.min(...times);
  return {
    title: `${title}, plain fixture`,
    fixture,
    start: new Date(first - 60_000).toISOString(),
    steps: members.map(({ name }) => name),
  };
}
