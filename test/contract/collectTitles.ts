/**
 * `node collectTitles.ts <test file>…` prints `{file: [title]}` as JSON. `node:test` is replaced by a recorder before the
 * files are loaded, so no test and no hook runs.
 */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import * as recorder from './titleRecorder.ts';

const recorderUrl = new URL('titleRecorder.ts', import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:test'
      ? { url: recorderUrl, shortCircuit: true, format: 'module-typescript' }
      : next(specifier, context),
});

const titles: Record<string, string[]> = {};
for (const file of process.argv.slice(2)) {
  recorder.begin();
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    throw new Error(`The titles of the tests in ${file} cannot be read: it does not load`, {
      cause: error,
    });
  }
  titles[file] = await recorder.recorded();
}
process.stdout.write(JSON.stringify(titles), () => process.exit(0));
