import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLogger, temporalLogger } from '../../../worker/runtime/logger.ts';
import type { LogLevel } from '../../../worker/runtime/flags.ts';

function recorded(level: LogLevel): {
  log: ReturnType<typeof createLogger>;
  lines: Record<string, unknown>[];
  raw: string[];
  text: () => string;
} {
  const lines: Record<string, unknown>[] = [];
  const raw: string[] = [];
  const write = (line: string): void => {
    raw.push(line);
    lines.push(JSON.parse(line));
  };
  return {
    raw,
    log: createLogger('worker', level, { write }),
    lines,
    text: () => JSON.stringify(lines),
  };
}

describe('the logger', () => {
  it('writes JSON lines with level, program and message', () => {
    const { log, lines } = recorded('info');
    log.info({ vmid: 100_123 }, 'proxmox vm adopted');
    const { time, ...line } = lines[0] ?? {};
    assert.deepEqual(line, {
      level: 'info',
      program: 'worker',
      vmid: 100_123,
      msg: 'proxmox vm adopted',
    });
    assert.match(String(time), /^\d{4}-\d\d-\d\dT/);
  });

  it('writes each key once: what the line says, else what was bound last', () => {
    const { log, raw } = recorded('info');
    const bound = log.child({ provider: 'pve', node: 'planned', vmid: 1 }).child({ vmid: 2 });
    bound.info({ node: 'met', err: new Error('a "node": of its own') }, 'step failed');
    const [line = ''] = raw;
    assert.match(line, /^\{.*\}\n$/);
    for (const key of ['provider', 'node', 'vmid', 'time', 'msg']) {
      assert.equal(line.split(`,"${key}":`).length, 2, line);
    }
    assert.match(line, /"node":"met"/);
    assert.match(line, /"vmid":2/);
  });

  it('keeps each tier to itself', () => {
    const { log, lines } = recorded('debug');
    log.trace({}, 'trace');
    log.debug({}, 'debug');
    log.info({}, 'info');
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      ['debug', 'info'],
    );
  });

  it('lets no secret field through, at any of the usual depths', () => {
    const { log, text } = recorded('info');
    log.info({ token: 'CANARY', proxy: { spec: { cloudInit: 'CANARY' } } }, 'm');
    log.info({ headers: { authorization: 'CANARY', 'proxy-authorization': 'CANARY' } }, 'm');
    log.info({ 'proxy-authorization': 'CANARY', password: 'CANARY' }, 'm');
    assert.ok(!text().includes('CANARY'), text());
  });

  it('writes an error with its message and cause', () => {
    const { log, text } = recorded('info');
    log.warn({ err: new Error('outer', { cause: new Error('inner') }) }, 'm');
    assert.match(text(), /outer.*inner/);
  });

  it('takes the lines of the Temporal SDK, its error as err', () => {
    const { log, lines } = recorded('info');
    const sdk = temporalLogger(log);
    sdk.warn('Worker failed', { error: new Error('boom'), taskQueue: 'q' });
    sdk.debug('too much', {});
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.['level'], 'warn');
    assert.equal(lines[0]?.['taskQueue'], 'q');
    assert.match(JSON.stringify(lines[0]?.['err']), /boom/);
  });
});
