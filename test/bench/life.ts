/** One create and delete taken apart: history, the simulator's tasks and requests, and the guest's boot. Pure. */
import { z } from 'zod';
import { divide, type Interval, type Share } from './intervals.ts';

const payloads = z.object({ payloads: z.array(z.object({ data: z.string() })) });
const eventSchema = z.object({
  eventTime: z.string(),
  eventType: z.string(),
  activityTaskScheduledEventAttributes: z
    .object({ activityType: z.object({ name: z.string() }), input: payloads.optional() })
    .optional(),
  activityTaskCompletedEventAttributes: z.object({ scheduledEventId: z.string() }).optional(),
  activityTaskFailedEventAttributes: z.object({ scheduledEventId: z.string() }).optional(),
  workflowExecutionSignaledEventAttributes: z.object({ signalName: z.string() }).optional(),
  eventId: z.string(),
});
const historySchema = z.object({ events: z.array(eventSchema).min(1) });
type HistoryEvent = z.infer<typeof eventSchema>;
const inputSchema = z.object({
  kind: z.string().optional(),
  status: z.object({ phase: z.string() }).optional(),
});

export const taskSchema = z.object({
  type: z.string(),
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
});
export const requestSchema = z.object({ method: z.string(), path: z.string() });
export type SimulatedTask = z.infer<typeof taskSchema>;
export type SeenRequest = z.infer<typeof requestSchema>;

/** Everything measured from outside during one life. */
export interface Observed {
  /** When the request that creates the object was sent, and when its deletion was asked for. */
  createdAtMs: number;
  deletedAtMs: number;
  /** As `temporal workflow show -o json` prints it. */
  history: string;
  tasks: SimulatedTask[];
  /** When QEMU ran and when the guest's agent began to answer. */
  boot: Interval;
  createRequests: SeenRequest[];
  deleteRequests: SeenRequest[];
}

export interface Measured {
  createMs: number;
  /** Milliseconds of the create that are not the operator's: Proxmox's tasks, the guest's boot, the agent's poll. */
  tasksMs: number;
  bootMs: number;
  agentMs: number;
  /** Everything else of the create, and where it went. */
  overheadMs: number;
  overhead: Map<string, number>;
  deleteMs: number;
  deleteOverheadMs: number;
  createEvents: number;
  deleteEvents: number;
  createRequests: SeenRequest[];
  deleteRequests: SeenRequest[];
}

interface StepTime {
  name: string;
  /** Of a wait, the kind of its task; of a publish, the phase. */
  detail: string;
  interval: Interval;
}

const tasksLabel = 'tasks of Proxmox';
const bootLabel = 'boot of the guest';
const agentLabel = "the agent's poll";
/** Labels that are not overhead. */
const given = [tasksLabel, bootLabel, agentLabel];

/** Throws when the history shows no create that became Ready. */
export function measure(observed: Observed): Measured {
  const { events } = historySchema.parse(JSON.parse(observed.history));
  const steps = stepsOf(events);
  const create = divideCreate(observed, events, steps);
  const overhead = [...create.parts].filter(([label]) => !given.includes(label));
  const ended = timeOf(events.at(-1));
  const signalled = timeOf(
    events.find(
      (event) => isSignal(event, 'desiredChanged') && timeOf(event) >= observed.deletedAtMs,
    ),
  );
  const deletion = { fromMs: signalled, toMs: ended };
  const deleteParts = divide(deletion, observed.tasks.map(taskShare), 'overhead');
  const deleteEvents = events.filter((event) => timeOf(event) >= observed.deletedAtMs).length;
  return {
    createMs: create.window.toMs - create.window.fromMs,
    tasksMs: create.parts.get(tasksLabel) ?? 0,
    bootMs: create.parts.get(bootLabel) ?? 0,
    agentMs: create.parts.get(agentLabel) ?? 0,
    overheadMs: overhead.reduce((sum, [, ms]) => sum + ms, 0),
    overhead: new Map(overhead),
    deleteMs: ended - signalled,
    deleteOverheadMs: deleteParts.get('overhead') ?? 0,
    createEvents: events.length - deleteEvents,
    deleteEvents,
    createRequests: observed.createRequests,
    deleteRequests: observed.deleteRequests,
  };
}

/** From the request to the status Ready; every millisecond goes to the first share that covers it. */
function divideCreate(
  { createdAtMs, tasks, boot }: Observed,
  events: readonly HistoryEvent[],
  steps: readonly StepTime[],
): { window: Interval; parts: Map<string, number> } {
  const polled = find(steps, 'pollAgent', '');
  const published = find(steps, 'publishStatus', 'Ready');
  const healthy = timeOf(events.find((event) => isSignal(event, 'health')));
  const window = { fromMs: createdAtMs, toMs: published.interval.toMs };
  const shares: Share[] = [
    ...tasks.map(taskShare),
    { label: bootLabel, interval: boot },
    { label: agentLabel, interval: { fromMs: boot.toMs, toMs: polled.interval.toMs } },
    { label: 'object → workflow', interval: { fromMs: createdAtMs, toMs: timeOf(events[0]) } },
    ...steps
      .filter(({ name }) => name !== 'publishStatus')
      .map(({ name, detail, interval }) => ({
        label: detail ? `${name} ${detail}` : name,
        interval,
      })),
    {
      label: 'address → health (publish, probe)',
      interval: { fromMs: polled.interval.toMs, toMs: healthy },
    },
    {
      label: 'health → Ready published',
      interval: { fromMs: healthy, toMs: published.interval.toMs },
    },
  ];
  return { window, parts: divide(window, shares, 'between steps (decisions, queues)') };
}

function taskShare({ startedAtMs, endedAtMs }: SimulatedTask): Share {
  return { label: tasksLabel, interval: { fromMs: startedAtMs, toMs: endedAtMs ?? startedAtMs } };
}

function stepsOf(events: readonly HistoryEvent[]): StepTime[] {
  const ends = new Map<string, number>();
  for (const event of events) {
    const end =
      event.activityTaskCompletedEventAttributes ?? event.activityTaskFailedEventAttributes;
    if (end) ends.set(end.scheduledEventId, timeOf(event));
  }
  return events.flatMap((event) => {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const toMs = ends.get(event.eventId);
    if (!scheduled || toMs === undefined) return [];
    const { kind, status } = inputOf(scheduled.input?.payloads[0]?.data);
    const detail = kind ?? status?.phase ?? '';
    return [
      { name: scheduled.activityType.name, detail, interval: { fromMs: timeOf(event), toMs } },
    ];
  });
}

function inputOf(data: string | undefined): z.infer<typeof inputSchema> {
  if (data === undefined) return {};
  return inputSchema.parse(JSON.parse(Buffer.from(data, 'base64').toString('utf8')));
}

function find(steps: readonly StepTime[], name: string, detail: string): StepTime {
  const found = steps.find((step) => step.name === name && step.detail === detail);
  if (!found) throw new Error(`the history shows no finished ${name} ${detail}`);
  return found;
}

function isSignal(event: HistoryEvent, name: string): boolean {
  return event.workflowExecutionSignaledEventAttributes?.signalName === name;
}

function timeOf(event: HistoryEvent | undefined): number {
  if (!event) throw new Error('the history lacks an event that every life has');
  return Date.parse(event.eventTime);
}
