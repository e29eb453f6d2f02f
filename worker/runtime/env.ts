/** Flags and environment of our programs: one table per program, typed options out, one sentence for each mistake. */
import { Command, CommanderError, Option } from 'commander';

/** A flag; its environment variable is `PROXY_OPERATOR_` + its name in capitals. The command line wins. */
export interface Flag<T> {
  description: string;
  /** The text as parsed; also what `--help` and docs show. */
  default: string;
  /** Throws an Error whose message completes «must be …». */
  parse(text: string): T;
  /** May be given several times (comma-separated in the environment); `parse` receives them joined by commas. */
  repeatable?: boolean;
}
export type FlagTable = Readonly<Record<string, Flag<unknown>>>;

type Camel<S extends string> = S extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S;
export type OptionsOf<Table extends FlagTable> = {
  [Name in keyof Table & string as Camel<Name>]: Table[Name] extends Flag<infer T> ? T : never;
};

/** The program cannot run as called. `exitCode` is 2; 0 for `--help`. */
export class UsageError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = 2) {
    super(message);
    this.name = 'UsageError';
    this.exitCode = exitCode;
  }
}

/** The environment of this process; nothing else reads `process.env`. */
export const processEnvironment: Readonly<NodeJS.ProcessEnv> = process.env;

/** `log-level` → `PROXY_OPERATOR_LOG_LEVEL`. */
export function environmentName(flag: string): string {
  return `PROXY_OPERATOR_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * Options of a program from its command line and environment.
 * @throws UsageError naming every flag with a problem, where the value came from and what it must be.
 */
export function readOptions<Table extends FlagTable>(
  program: string,
  table: Table,
  args: readonly string[] = process.argv.slice(2),
  env: Readonly<NodeJS.ProcessEnv> = processEnvironment,
): OptionsOf<Table> {
  const given = parseCommandLine(program, table, args);
  const problems: string[] = [];
  const options: Record<string, unknown> = {};
  for (const [name, flag] of Object.entries(table)) {
    const key = camelCase(name);
    const fromEnv = env[environmentName(name)];
    const [source, text] =
      given[key] !== undefined
        ? [`--${name}`, given[key]]
        : // An empty variable is one that a manifest left unset.
          fromEnv !== undefined && fromEnv !== ''
          ? [environmentName(name), fromEnv]
          : [`the default of --${name}`, flag.default];
    try {
      options[key] = flag.parse(text);
    } catch (error) {
      const expected = error instanceof Error ? error.message : String(error);
      problems.push(`${source} is "${text}" but must be ${expected}`);
    }
  }
  if (problems.length > 0 || !isComplete(table, options)) {
    throw new UsageError(`${problems.join('; ')}.`);
  }
  return options;
}

function parseCommandLine(
  program: string,
  table: FlagTable,
  args: readonly string[],
): Record<string, string | undefined> {
  let output = '';
  const command = new Command(program)
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({
      writeErr: (text) => (output += text),
      writeOut: (text) => (output += text),
    });
  for (const [name, flag] of Object.entries(table)) {
    const shown = flag.default === '' ? '' : `, default ${flag.default}`;
    const text = `${flag.description} (env ${environmentName(name)}${shown})`;
    const option = new Option(`--${name} <value>`, text);
    if (flag.repeatable) {
      option.argParser((value: string, before?: string) =>
        before === undefined ? value : `${before},${value}`,
      );
    }
    command.addOption(option);
  }
  try {
    return command.parse([...args], { from: 'user' }).opts();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const text = output
      .replace(/^error: /, '')
      .replaceAll(/\s*\n\(/g, ' (')
      .trim();
    throw new UsageError(
      error.exitCode === 0 ? text : oneSentence(text),
      error.exitCode === 0 ? 0 : 2,
    );
  }
}

function oneSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}; --help lists what there is.`;
}

/** `readOptions` for a main program: a mistake is printed and ends the process with code 2. */
export function readOptionsOrExit<Table extends FlagTable>(
  program: string,
  table: Table,
): OptionsOf<Table> {
  try {
    return readOptions(program, table);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const stream = error.exitCode === 0 ? process.stdout : process.stderr;
    stream.write(error.exitCode === 0 ? `${error.message}\n` : `${program}: ${error.message}\n`);
    return process.exit(error.exitCode);
  }
}

function isComplete<Table extends FlagTable>(
  table: Table,
  options: Record<string, unknown>,
): options is Record<string, unknown> & OptionsOf<Table> {
  return Object.keys(table).every((name) => camelCase(name) in options);
}

function camelCase(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
