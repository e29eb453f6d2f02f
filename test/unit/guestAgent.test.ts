/**
 * Runs the guest-agent script in a world of stand-ins: PATH holds nothing but scripts of this test, so each
 * distribution is the set of commands it has, and nothing of this machine is touched.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { guestAgentScript } from '../../activities/seed/guestAgent.ts';

interface World {
  /** Commands besides `sleep` and `pidof`, with what they do; each one is written to the log when called. */
  commands: Record<string, string>;
  installed?: boolean;
  running?: boolean;
}
interface Outcome {
  exitCode: number;
  output: string;
  /** Calls in their order, without the waiting. */
  calls: string[];
}

const install = ': > "$W/qemu-ga"; /bin/chmod 755 "$W/qemu-ga"';
const start = '[ -e "$W/qemu-ga" ] && : > "$W/running"';

async function inWorld<T>(
  world: World,
  use: (run: () => Promise<Outcome>) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'guest-agent-'));
  const command = async (name: string, body: string) => {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\nW='${folder}'\necho "${name} $*" >> "$W/log"\n${body}\n`);
    await chmod(path, 0o755);
  };
  try {
    await writeFile(join(folder, 'log'), '');
    await command('sleep', ':');
    await command('pidof', '[ -e "$W/running" ]');
    for (const [name, body] of Object.entries(world.commands)) await command(name, body);
    if (world.installed === true) await command('qemu-ga', ':');
    if (world.running === true) await writeFile(join(folder, 'running'), '');
    return await use(() => run(folder));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function run(folder: string): Promise<Outcome> {
  const { exitCode, output } = await new Promise<{ exitCode: number; output: string }>((done) => {
    const child = execFile(
      '/bin/sh',
      ['-c', guestAgentScript],
      { env: { PATH: folder }, cwd: folder },
      (_error, stdout, stderr) => done({ exitCode: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });
  const log = await readFile(join(folder, 'log'), 'utf8');
  await writeFile(join(folder, 'log'), '');
  const calls = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(sleep|pidof)\b/.test(line));
  return { exitCode, output, calls };
}

const installs = (calls: readonly string[]) =>
  calls.filter((call) => /^(apt-get|dnf|microdnf|yum|zypper|apk)\b/.test(call));

const systemd = { systemctl: `case "$*" in *start*) ${start};; esac`, udevadm: ':' };
const openRc = { 'rc-service': start, 'rc-update': ':' };
const onInstall = `case "$*" in *install*) ${install};; esac`;

const distributions: [string, Record<string, string>, RegExp][] = [
  [
    'Debian and Ubuntu',
    { 'apt-get': onInstall, ...systemd },
    /^apt-get .*install .*qemu-guest-agent$/,
  ],
  [
    'RHEL and its like',
    { dnf: onInstall, yum: 'exit 1', ...systemd },
    /^dnf .*install qemu-guest-agent$/,
  ],
  ['a minimal RHEL', { microdnf: onInstall, ...systemd }, /^microdnf .*install qemu-guest-agent$/],
  ['an old RHEL', { yum: onInstall, ...systemd }, /^yum .*install qemu-guest-agent$/],
  ['openSUSE', { zypper: onInstall, ...systemd }, /^zypper .*install .*qemu-guest-agent$/],
  ['Alpine', { apk: install, ...openRc }, /^apk add .*qemu-guest-agent$/],
];

describe('the guest-agent script', () => {
  for (const [name, commands, installCall] of distributions) {
    it(`installs and starts the agent on ${name}, and does nothing the second time`, async () => {
      await inWorld({ commands }, async (again) => {
        const first = await again();
        assert.equal(first.exitCode, 0, first.output);
        assert.match(first.output, /guest agent: runs/);
        assert.ok(
          first.calls.some((call) => installCall.test(call)),
          first.calls.join('\n'),
        );
        const second = await again();
        assert.deepEqual([second.exitCode, second.calls], [0, []]);
      });
    });
  }

  it('touches no package manager when the agent is installed, and starts it', async () => {
    const commands = { 'apt-get': 'exit 1', ...systemd };
    await inWorld({ commands, installed: true }, async (once) => {
      const { exitCode, calls } = await once();
      assert.equal(exitCode, 0);
      assert.deepEqual(installs(calls), []);
      assert.ok(calls.some((call) => /^systemctl .*start qemu-guest-agent/.test(call)));
    });
  });

  it('does nothing at all when the agent runs, even without any tool', async () => {
    await inWorld({ commands: {}, installed: true, running: true }, async (once) => {
      const { exitCode, calls } = await once();
      assert.deepEqual([exitCode, calls], [0, []]);
    });
  });

  it('survives a mirror that answers at the third attempt only', async () => {
    const late = `case "$*" in *install*)
      if [ -e "$W/two" ]; then ${install}; exit 0; fi
      if [ -e "$W/one" ]; then : > "$W/two"; else : > "$W/one"; fi
      exit 100;; esac`;
    await inWorld({ commands: { 'apt-get': late, ...systemd } }, async (once) => {
      const { exitCode, calls } = await once();
      assert.equal(exitCode, 0);
      assert.equal(installs(calls).filter((call) => call.includes(' install ')).length, 3);
    });
  });

  it('asks for the packages even if the lists cannot be refreshed', async () => {
    const stale = `case "$*" in *install*) ${install};; *) exit 100;; esac`;
    await inWorld({ commands: { 'apt-get': stale, ...systemd } }, async (once) => {
      assert.equal((await once()).exitCode, 0);
    });
  });

  it('fails with a line for the log when the agent cannot be installed', async () => {
    await inWorld({ commands: { 'apt-get': 'exit 100', ...systemd } }, async (once) => {
      const { exitCode, output } = await once();
      assert.equal(exitCode, 1);
      assert.match(output, /could not be installed; the operator will not learn/);
    });
  });

  it('says so on a system without a package manager it knows', async () => {
    await inWorld({ commands: systemd }, async (once) => {
      const { exitCode, output } = await once();
      assert.equal(exitCode, 1);
      assert.match(output, /no package manager found/);
    });
  });

  it('names the agent option when the agent does not start', async () => {
    const commands = { 'apt-get': onInstall, systemctl: 'exit 1' };
    await inWorld({ commands }, async (once) => {
      const { exitCode, output } = await once();
      assert.equal(exitCode, 1);
      assert.match(output, /is the agent option of the VM on/);
    });
  });
});
