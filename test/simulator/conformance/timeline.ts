import { z } from 'zod';
import type { Lab } from './lab.ts';
import { isRecord, probesFor, trackGroup, withoutNulls } from './timelineProbes.ts';

const entry = z.looseObject({ t: z.number() });

/** A file that says what changed over time, as somebody polled it. */
export const timelineFile = z.looseObject({ timeline: z.array(entry) });
export type TimelineEntry = z.output<typeof entry>;

/** One thing that was looked at: a row, a config, a node. */
interface Span {
  value: string;
  /** Seconds after the beginning at which it was first seen so. */
  from: number;
}
type Tracks = Map<string, Span[]>;

/** Both sides looked several times a second at best, so what was shorter than this may have been missed. */
const BRIEF_SECONDS = 1.2;
/** A worker of pveproxy with an old copy of the statistics makes a value come back for so long (pve/cluster.md 7). */
const FLICKER_SECONDS = 2.6;
/** How far apart the same change may lie on both sides: seconds, and part of the time that has passed. */
const TOLERANCE_SECONDS = 4;
const TOLERANCE_PART = 0.02;
/** What pvestatd reports may come a round earlier or later: its rounds drift, ours do not. */
const ROUND_SECONDS = 10;
/** Groups whose rows are made of fields of different origin, each with a time of its own. */
const ROWS = /^(row|resources|vm|nodes?|storage|pve\d)\b/;
const REPORTED = /\.(name|status|template|uptime|maxmem|disk|level|keys)$/;

/** Watches the cluster while a session goes on, and says at the end where it went another way than captured. */
export interface Recorder {
  name: string;
  /** Real ms of virtual time at which the captured entries end. */
  endsAt: number;
  differences(): string[];
}

/** Starts to look, several times a second of virtual time, at what the captured entries speak of. */
export function record(lab: Lab, name: string, captured: readonly TimelineEntry[]): Recorder {
  const { clock } = lab;
  const startedAt = clock.now();
  const expected = tracksOf(captured);
  const span = Math.max(0, ...captured.map(({ t }) => t));
  const endsAt = startedAt + (span + ROUND_SECONDS) * 1000;
  const vmid = /(?:"service:vm:|VM |qemu-server\/)(\d+)/.exec(JSON.stringify(captured))?.[1] ?? '';
  const probes = probesFor(lab, [...shapesOf(captured).keys()], vmid);
  const seen: Tracks = new Map();
  const shapes = shapesOf(captured);
  const note = (track: string, value: unknown, at: number): void => {
    const keys = shapes.get(track) ?? new Set();
    for (const [field, text] of fieldsOf(track, value, keys)) {
      push(seen, field, text, (at - startedAt) / 1000);
    }
  };
  const look = async (): Promise<void> => {
    const busy = new Set<string>();
    while (clock.now() <= endsAt) {
      for (const [group, probe] of probes) {
        if (busy.has(group)) continue;
        busy.add(group);
        void probe().then((values) => {
          busy.delete(group);
          const at = clock.now();
          for (const track of shapes.keys()) {
            if (trackGroup(track) === group) note(track, values.get(track) ?? null, at);
          }
        });
      }
      await clock.sleep(span > 100 ? 0.5 : 0.2);
    }
  };
  void look();
  return { name, endsAt, differences: () => compareTracks(expected, seen, span) };
}

type Sightings = Map<string, { t: number; value: unknown }[]>;

/** `changed` names a group of rows, each of which is a track of its own; other keys are one track each. */
function sightingsOf(entries: readonly TimelineEntry[]): Sightings {
  const found: Sightings = new Map();
  const began = new Map<string, number>();
  const add = (track: string, t: number, value: unknown): void => {
    found.set(track, [...(found.get(track) ?? []), { t, value }]);
  };
  for (const { t, changed, event: _event, elapsed: _elapsed, ...rest } of entries) {
    for (const [key, value] of Object.entries(rest)) add(key, t, value);
    for (const [group, rows] of Object.entries(isRecord(changed) ? changed : {})) {
      const first = began.get(group) ?? t;
      began.set(group, first);
      for (const [id, row] of Object.entries(isRecord(rows) ? rows : {})) {
        const track = `${group} ${id}`;
        // A row that comes later was not there before.
        if (!found.has(track) && first < t) add(track, first, null);
        add(track, t, row);
      }
    }
  }
  return found;
}

/** The keys that the captured side shows of each track. */
function shapesOf(entries: readonly TimelineEntry[]): Map<string, ReadonlySet<string>> {
  const shapes = new Map<string, ReadonlySet<string>>();
  for (const [track, sightings] of sightingsOf(entries)) {
    const keys = sightings.flatMap(({ value }) => (isRecord(value) ? Object.keys(value) : []));
    shapes.set(track, new Set(keys));
  }
  return shapes;
}

function tracksOf(entries: readonly TimelineEntry[]): Tracks {
  const shapes = shapesOf(entries);
  const tracks: Tracks = new Map();
  for (const [track, sightings] of sightingsOf(entries)) {
    for (const { t, value } of sightings) {
      for (const [field, text] of fieldsOf(track, value, shapes.get(track) ?? new Set())) {
        push(tracks, field, text, t);
      }
    }
  }
  return tracks;
}

/** A row as its fields, anything else as a whole. */
function fieldsOf(
  track: string,
  value: unknown,
  keys: ReadonlySet<string>,
): (readonly [string, string])[] {
  if (!ROWS.test(track) || keys.size === 0) return [[track, picture(value, keys)]];
  return [...keys].map((key) => [`${track}.${key}`, picture(value, new Set([key]))] as const);
}

/** Only what the captured side shows; numbers that measure the host become words. */
function picture(value: unknown, keys: ReadonlySet<string>): string {
  if (!isRecord(value)) return JSON.stringify(value ?? null);
  const shown: [string, unknown][] = [];
  for (const key of [...keys].sort()) {
    const item = value[key];
    if (item === undefined || item === null) continue;
    // Of a running VM it is 0 or more, as the round of pvestatd falls.
    if (key === 'uptime') shown.push([key, value['status'] === 'running' ? '>=0' : item]);
    else if (key === 'disk') shown.push([key, 'set']);
    else shown.push([key, isRecord(item) ? withoutNulls(item) : item]);
  }
  return JSON.stringify(Object.fromEntries(shown));
}

function push(tracks: Tracks, track: string, value: string, from: number): void {
  const spans = tracks.get(track) ?? [];
  if (spans.at(-1)?.value !== value) spans.push({ value, from });
  tracks.set(track, spans);
}

/** Values that came back for a moment only, because another worker of pveproxy answered. */
function withoutFlicker(spans: readonly Span[]): Span[] {
  const calm: Span[] = [];
  for (const [index, span] of spans.entries()) {
    const next = spans[index + 1];
    const lasted = (next?.from ?? Infinity) - span.from;
    const comesBack = calm.some(({ value }) => value === span.value);
    if (comesBack && lasted < FLICKER_SECONDS) continue;
    if (calm.at(-1)?.value !== span.value) calm.push(span);
  }
  return calm;
}

function compareTracks(expected: Tracks, seen: Tracks, span: number): string[] {
  const found: string[] = [];
  for (const [track, spans] of expected) {
    const isReported = ROWS.test(track) && REPORTED.test(track);
    const calm = isReported ? withoutFlicker : (all: readonly Span[]): readonly Span[] => all;
    const captured = calm(spans);
    // What nobody looked at from the beginning is compared from the first look on.
    const first = captured[0]?.from ?? 0;
    const since = first === 0 ? 0 : first - TOLERANCE_SECONDS;
    const simulated = calm(seen.get(track) ?? []).filter(({ from }) => from >= since);
    const lines = compareSpans(captured, simulated, span, isReported);
    found.push(...lines.map((line) => `${track}: ${line}`));
  }
  return found;
}

/** Same values in the same order at about the same times; brief ones may be missing on either side. */
function compareSpans(
  captured: readonly Span[],
  simulated: readonly Span[],
  spanSeconds: number,
  isReported: boolean,
): string[] {
  const found: string[] = [];
  let at = 0;
  for (const [index, span] of captured.entries()) {
    while (simulated[at] !== undefined && simulated[at]?.value !== span.value) {
      if (!isBrief(simulated, at)) break;
      at += 1;
    }
    const own = simulated[at];
    if (own === undefined || own.value !== span.value) {
      if (isBrief(captured, index)) continue;
      const instead = own === undefined ? 'nothing' : `${own.value} at ${own.from.toFixed(1)} s`;
      return [...found, `captured ${span.value} at ${span.from} s, simulated ${instead}`];
    }
    const tolerance = (isReported ? ROUND_SECONDS : TOLERANCE_SECONDS) + span.from * TOLERANCE_PART;
    if (index > 0 && Math.abs(own.from - span.from) > tolerance) {
      found.push(
        `${span.value}: captured at ${span.from} s, simulated at ${own.from.toFixed(1)} s`,
      );
    }
    at += 1;
  }
  const extra = simulated
    .slice(at)
    .find(({ from }, index) => from < spanSeconds && !isBrief(simulated, at + index));
  if (extra !== undefined) {
    found.push(`simulated ${extra.value} at ${extra.from.toFixed(1)} s besides`);
  }
  return found;
}

function isBrief(spans: readonly Span[], index: number): boolean {
  const next = spans[index + 1];
  return next !== undefined && next.from - (spans[index]?.from ?? 0) < BRIEF_SECONDS;
}
