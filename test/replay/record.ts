/**
 * `npm run record:history [-- <name>…]`: tells every story (or those named) and keeps its history for the release in
 * package.json. Those of a release that was made stay as they are: a change of a workflow
 * must replay them, and new stories are recorded for the release to come.
 */
import { Argument, Command } from 'commander';
import { printLine, runProgram } from '../../deploy/dev/program.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { prepareWorkflowServer, tellStory } from '../support/workflowHarness.ts';
import { currentRelease, parseHistory, removeOthers, writeHistory } from './histories.ts';
import type { Keep, RecordedStory, Recording } from './recordedStory.ts';
import { showHistory } from './showHistory.ts';
import { changingStories } from './stories/changing.ts';
import { collectingRecordings, collectingStories } from './stories/collecting.ts';
import { makingStories } from './stories/making.ts';
import { probesRecordings } from './stories/probes.ts';
import { providerRecordings } from './stories/provider.ts';
import { removingStories } from './stories/removing.ts';
import { repairingStories } from './stories/repairing.ts';
import { stackRecordings } from './stories/stack.ts';

const recordings = allRecordings();
const command = new Command('npm run record:history --')
  .description('Tells every story, or those named, and keeps its history in testdata/histories.')
  .addArgument(new Argument('[stories...]', 'some of them').choices([...recordings.keys()]));

runProgram(command, async () => {
  const names = command.args;
  await prepareWorkflowServer();
  const release = currentRelease();
  const kept: string[] = [];
  for (const [name, record] of recordings) {
    if (names.length === 0 || names.includes(name)) await record(keepAs(release, kept), name);
  }
  if (names.length === 0) removeOthers(release, kept);
  return 0;
});

function keepAs(release: string, kept: string[]): Keep {
  return (name, json) => {
    const history = parseHistory(json);
    kept.push(name);
    const bytes = writeHistory(release, name, history);
    printLine(
      `${release}/${name}: ${history.events.length} events, ${Math.ceil(bytes / 1_024)} KiB`,
    );
  };
}

function allRecordings(): Map<string, Recording> {
  const told = [
    ...makingStories,
    ...changingStories,
    ...removingStories,
    ...repairingStories,
    ...collectingStories,
  ];
  return new Map<string, Recording>([
    ...told.map((story): [string, Recording] => [story.name, (keep) => recordTold(story, keep)]),
    ...Object.entries(collectingRecordings),
    ...Object.entries(probesRecordings),
    ...Object.entries(providerRecordings),
    ...Object.entries(stackRecordings),
  ]);
}

async function recordTold(recorded: RecordedStory, keep: Keep): Promise<void> {
  const world = new FakeWorld();
  recorded.world?.(world);
  const settings = { searchAttributes: true, ...recorded.settings };
  await tellStory(
    world,
    async (story) => {
      await recorded.tell(story);
      await story.settled();
      const { handle, env } = story;
      const { workflowId, firstExecutionRunId } = handle;
      keep(recorded.name, await showHistory(env, workflowId, firstExecutionRunId));
      if (recorded.lastRun !== undefined)
        keep(recorded.lastRun, await showHistory(env, workflowId));
    },
    settings,
  );
}
