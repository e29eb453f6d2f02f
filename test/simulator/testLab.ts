import assert from 'node:assert/strict';
import { certificatesInMemory } from './certificates.ts';
import type { CapturedRequest } from './conformance/captures.ts';
import { openLab, type Lab } from './conformance/lab.ts';
import { encodeRequest, SECRET, type Reaction } from './conformance/wire.ts';
import { loadFixture, type FixtureInput } from './fixture.ts';
import type { SimulatorOptions } from './simulator.ts';

const FIXTURE = new URL('../../testdata/pve/9.2/fixture-cluster.yaml', import.meta.url).pathname;
const START = Date.parse('2026-11-29T12:00:00Z');

type Params = Readonly<Record<string, string | number>>;

/** An answer, taken apart; status 0: the connection was closed without one. */
export interface Answer {
  status: number;
  reason: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  data: unknown;
  errors: unknown;
  /** Seconds of the cluster that it took. */
  seconds: number;
}

export interface AskOptions {
  /** Whose API is asked; default pve1. */
  node?: string;
  /** `user@realm!id`; default the operator. */
  token?: string;
  secret?: string;
  /** Anything else of the request as it goes over the wire. */
  request?: Partial<CapturedRequest>;
}

/** Two nodes on a clock that only goes on when somebody waits: templates 9001 and 9002 on pve1, 9003 on pve2. */
export interface TestLab extends Lab {
  ask(method: string, path: string, params?: Params, options?: AskOptions): Promise<Answer>;
  askAll(
    requests: readonly (readonly [method: string, path: string, params?: Params])[],
  ): Promise<Answer[]>;
  /** Starts a task and returns what it ended in. */
  exit(method: string, path: string, params?: Params, options?: AskOptions): Promise<string>;
  /** What the task of an answer ended in. */
  end(answer: Answer): Promise<string>;
  log(answer: Answer): readonly string[];
  /** The row of a VM in `cluster/resources`. */
  row(vmid: number, options?: AskOptions): Promise<Record<string, unknown> | undefined>;
  config(vmid: number, node?: string): Promise<Record<string, unknown>>;
}

/** Opens a lab, runs `body` and closes it, whatever comes. */
export async function withLab(
  body: (lab: TestLab) => Promise<void>,
  options: {
    fixture?: Partial<FixtureInput>;
    lab?: Pick<SimulatorOptions, 'workerCacheSeconds' | 'requestsPerWorker'>;
  } = {},
): Promise<void> {
  const base = loadFixture(FIXTURE);
  const { times, ...rest } = options.fixture ?? {};
  const fixture = { ...base, ...rest, times: { ...base.times, ...times } };
  const lab = await openLab(fixture, START, await certificatesInMemory(), options.lab);
  try {
    await body(extend(lab));
  } finally {
    await lab.close();
  }
}

/** The fixture that `withLab` starts from, to add to. */
export function baseFixture(): ReturnType<typeof loadFixture> {
  return loadFixture(FIXTURE);
}

function extend(lab: Lab): TestLab {
  const encode = (method: string, path: string, params: Params, options: AskOptions): Buffer =>
    encodeRequest(
      {
        authorization: `PVEAPIToken=${options.token ?? 'proxy-operator@pve!operator'}=<secret>`,
        ...options.request,
        method,
        path: `/api2/json${path}`,
        params: { ...params },
      },
      { text: (text) => text, secret: options.secret ?? SECRET },
    );
  const ask: TestLab['ask'] = async (method, path, params = {}, options = {}) => {
    const bytes = encode(method, path, params, options);
    const { reaction, elapsedSeconds } = await lab.exchange(options.node ?? 'pve1', bytes);
    return answerOf(reaction, elapsedSeconds);
  };
  const end: TestLab['end'] = async (answer) => {
    assert.equal(answer.status, 200, `${answer.status} ${answer.reason}`);
    const upid = String(answer.data);
    await lab.ended(upid);
    return lab.simulator.tasks.find((task) => task.upid === upid)?.exitstatus ?? 'no such task';
  };
  return {
    ...lab,
    ask,
    askAll: async (requests) => {
      const encoded = requests.map(([method, path, params = {}]) => ({
        node: 'pve1',
        bytes: encode(method, path, params, {}),
      }));
      const answers = await lab.exchangeAll(encoded);
      return answers.map(({ reaction, elapsedSeconds }) => answerOf(reaction, elapsedSeconds));
    },
    end,
    exit: async (method, path, params, options) => end(await ask(method, path, params, options)),
    log: (answer) => lab.simulator.tasks.find(({ upid }) => upid === answer.data)?.log ?? [],
    row: async (vmid, options) => {
      const { data } = await ask('GET', '/cluster/resources', { type: 'vm' }, options);
      const rows: unknown[] = Array.isArray(data) ? data : [];
      return rows.filter(isRecord).find((row) => row['vmid'] === vmid);
    },
    config: async (vmid, node = 'pve1') => {
      const { data, status, reason } = await ask('GET', `/nodes/${node}/qemu/${vmid}/config`);
      assert.equal(status, 200, reason);
      return isRecord(data) ? data : {};
    },
  };
}

function answerOf(reaction: Reaction, seconds: number): Answer {
  if (reaction === 'closed') {
    const nothing = { status: 0, reason: 'closed', headers: {}, body: '' };
    return { ...nothing, data: null, errors: null, seconds };
  }
  const parsed = parse(reaction.body);
  const { status, reason, headers, body } = reaction;
  return { status, reason, headers, body, data: parsed['data'], errors: parsed['errors'], seconds };
}

function parse(body: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(body);
    return isRecord(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
