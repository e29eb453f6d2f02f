/** The flags of controller and worker (design §10). docs/configuration.md is tested against these tables. */
import type { Flag } from './env.ts';

const logLevels = ['info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

function text(description: string, value = ''): Flag<string> {
  return { description, default: value, parse: (given) => given };
}

function port(description: string, value: number): Flag<number> {
  return {
    description,
    default: String(value),
    parse: (given) => {
      const number = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN;
      if (!(number <= 65_535)) throw new Error('a port from 0 to 65535 (0 takes a free one)');
      return number;
    },
  };
}

/** In milliseconds. */
function duration(description: string, value: string): Flag<number> {
  const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
  return {
    description,
    default: value,
    parse: (given) => {
      const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(given) ?? [];
      const ms = Number(amount) * (units[unit ?? ''] ?? Number.NaN);
      if (!(ms > 0)) throw new Error('a duration such as 500ms, 15s or 1m');
      return ms;
    },
  };
}

const logLevel: Flag<LogLevel> = {
  description: 'how much is logged: info, debug (every API call) or trace (their parameters)',
  default: 'info',
  parse: (given) => {
    const level = logLevels.find((name) => name === given);
    if (level === undefined) throw new Error(`one of ${logLevels.join(', ')}`);
    return level;
  },
};

const url: Flag<string> = {
  description: 'what probes ask for through a proxy whose spec names no URL',
  default: 'http://www.gstatic.com/generate_204',
  parse: (given) => {
    if (!/^https?:$/.test(URL.parse(given)?.protocol ?? '')) {
      throw new Error('a URL that begins with http:// or https://');
    }
    return given;
  },
};

const names: Flag<readonly string[]> = {
  description: 'further installation whose VMs are adopted and marked anew; may be repeated',
  default: '',
  repeatable: true,
  parse: (given) => given.split(',').filter((name) => name !== ''),
};

/** Flags of both programs. */
const common = {
  'log-level': logLevel,
  'bind-address': text('address the ports below listen on', '0.0.0.0'),
  'metrics-port': port('port of /metrics', 8080),
  'health-port': port('port of /healthz and /readyz', 8081),
};

/** Flags of `controller/main.ts`. */
export const controllerFlags = {
  ...common,
  'discovery-port': port('port of the discovery API', 8090),
};

/** Flags of `worker/main.ts`. */
export const workerFlags = {
  ...common,
  'sdk-metrics-port': port("port of the Temporal SDK's own /metrics", 8082),
  'providers-config': text(
    'file with the configured providers',
    '/etc/proxy-operator/providers.yaml',
  ),
  'workflow-bundle': text(
    'file made by npm run bundle; without it workflows are bundled at the start',
  ),
  'provider-check-interval': duration('time between two checks of a provider', '1m'),
  'provider-check-timeout': duration('bound of one check of a provider', '15s'),
  'health-check-url': url,
  'installation-id': text(
    'identity of this installation on Proxmox; by default the UID of the namespace kube-system',
  ),
  'also-installation': names,
};
