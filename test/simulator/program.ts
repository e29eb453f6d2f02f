/** What the programs of this folder share: a start that cannot succeed ends with one sentence instead of a stack. */

/** A start that the person at the keyboard can mend: its message says how. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Runs a program; what it throws is printed, and ends the process with code 1. */
export function runMain(main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    process.stderr.write(`${sentenceOf(error)}\n`);
    process.exit(1);
  });
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') {
    const where = 'address' in error && 'port' in error ? `${String(error.address)}:${String(error.port)}` : 'A port'; // prettier-ignore
    return `${where} is in use: end what listens there, or choose another one with --port and --admin-port (0: a free one).`;
  }
  // Of the system and of the YAML parser: their messages name the file or the address.
  if (error instanceof StartError || typeof code === 'string') return error.message;
  return error.stack ?? error.message;
}
