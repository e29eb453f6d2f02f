import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentName, readOptions, UsageError } from '../../../worker/runtime/env.ts';
import type { OptionsOf } from '../../../worker/runtime/env.ts';
import { controllerFlags, workerFlags } from '../../../worker/runtime/flags.ts';
import { readTemporalSettings } from '../../../worker/runtime/temporalSettings.ts';

const worker = (args: string[], env: Record<string, string> = {}): OptionsOf<typeof workerFlags> =>
  readOptions('worker', workerFlags, args, env);

describe('flags and environment', () => {
  it('has the documented defaults', () => {
    assert.deepEqual(worker([]), {
      logLevel: 'info',
      bindAddress: '0.0.0.0',
      metricsPort: 8080,
      healthPort: 8081,
      sdkMetricsPort: 8082,
      providersConfig: '/etc/proxy-operator/providers.yaml',
      workflowBundle: '',
      providerCheckInterval: 60_000,
      providerCheckTimeout: 15_000,
      healthCheckUrl: 'http://www.gstatic.com/generate_204',
      installationId: '',
      alsoInstallation: [],
    });
    assert.equal(readOptions('controller', controllerFlags, [], {}).discoveryPort, 8090);
  });

  it('takes a flag before the environment and the environment before the default', () => {
    const env = { PROXY_OPERATOR_METRICS_PORT: '1', PROXY_OPERATOR_HEALTH_PORT: '2' };
    const options = worker(['--metrics-port=3'], env);
    assert.deepEqual([options.metricsPort, options.healthPort], [3, 2]);
  });

  it('takes an empty variable for an absent one', () => {
    assert.equal(worker([], { PROXY_OPERATOR_LOG_LEVEL: '' }).logLevel, 'info');
  });

  it('collects a repeated flag and splits its variable at commas', () => {
    const args = ['--also-installation', 'a', '--also-installation=b'];
    assert.deepEqual(worker(args).alsoInstallation, ['a', 'b']);
    const env = { PROXY_OPERATOR_ALSO_INSTALLATION: 'c,d' };
    assert.deepEqual(worker([], env).alsoInstallation, ['c', 'd']);
  });

  it('reads durations in their units', () => {
    for (const [text, ms] of [
      ['250ms', 250],
      ['1.5m', 90_000],
      ['2h', 7_200_000],
    ] as const) {
      assert.equal(worker([`--provider-check-interval=${text}`]).providerCheckInterval, ms);
    }
  });

  for (const [args, message] of [
    [['--log-level=verbose'], /--log-level is "verbose" but must be one of info, debug, trace/],
    [['--metrics-port=65536'], /must be a port from 0 to 65535/],
    [['--metrics-port='], /must be a port/],
    [['--metrics-port=-1'], /must be a port/],
    [['--provider-check-timeout=15'], /must be a duration/],
    [['--health-check-url=example.org'], /must be a URL that begins with/],
    [['--metrics-prt=1'], /--metrics-prt.*Did you mean --metrics-port/],
    [['extra'], /arguments/i],
    [['--log-level'], /argument missing/],
  ] as const) {
    it(`refuses ${args.join(' ')}`, () => {
      assert.throws(() => worker([...args]), message);
    });
  }

  it('names the variable a bad value came from, and all problems at once', () => {
    const env = { PROXY_OPERATOR_HEALTH_PORT: 'x', PROXY_OPERATOR_LOG_LEVEL: 'y' };
    assert.throws(
      () => worker([], env),
      (error: unknown) =>
        error instanceof UsageError &&
        error.exitCode === 2 &&
        /PROXY_OPERATOR_HEALTH_PORT is "x".*; PROXY_OPERATOR_LOG_LEVEL|PROXY_OPERATOR_LOG_LEVEL is "y".*; PROXY_OPERATOR_HEALTH_PORT/.test(
          error.message,
        ),
    );
  });

  it('shows every flag with its variable on --help, with exit code 0', () => {
    assert.throws(
      () => worker(['--help']),
      (error: unknown) =>
        error instanceof UsageError &&
        error.exitCode === 0 &&
        Object.keys(workerFlags).every(
          (name) =>
            error.message.includes(`--${name}`) && error.message.includes(environmentName(name)),
        ),
    );
  });
});

describe('TEMPORAL_* variables', () => {
  it('default to a local server without TLS', () => {
    assert.deepEqual(readTemporalSettings({}), {
      address: 'localhost:7233',
      namespace: 'egress-proxies',
      apiKey: null,
      tls: null,
    });
  });

  it('turn TLS on for an API key, unless told otherwise', () => {
    assert.deepEqual(readTemporalSettings({ TEMPORAL_API_KEY: 'k' }).tls, {});
    const off = { TEMPORAL_API_KEY: 'k', TEMPORAL_TLS: 'false' };
    assert.equal(readTemporalSettings(off).tls, null);
  });

  it('take certificates as data', () => {
    const { tls } = readTemporalSettings({
      TEMPORAL_TLS_CLIENT_CERT_DATA: 'crt',
      TEMPORAL_TLS_CLIENT_KEY_DATA: 'key',
      TEMPORAL_TLS_SERVER_NAME: 'temporal.example',
    });
    assert.equal(tls?.serverNameOverride, 'temporal.example');
    assert.equal(Buffer.from(tls?.clientCertPair?.key ?? '').toString(), 'key');
  });

  for (const [env, message] of [
    [{ TEMPORAL_TLS: 'maybe' }, /TEMPORAL_TLS is "maybe"/],
    [{ TEMPORAL_TLS_CLIENT_CERT_DATA: 'crt' }, /needs its key/],
    [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/absent.pem' }, /SERVER_CA_CERT_PATH cannot be read/],
  ] as const) {
    it(`are refused: ${Object.keys(env).join()}`, () => {
      assert.throws(() => readTemporalSettings(env), message);
    });
  }
});
