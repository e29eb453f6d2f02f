/** A story whose history is worth keeping. */
import type { FakeWorld } from '../support/fakeWorld.ts';
import type { Story, StorySettings } from '../support/workflowHarness.ts';

/** Keeps a history, given as JSON, under a name. */
export type Keep = (name: string, history: string) => void;

/** How a history comes about; it is kept under the recording's name. */
export type Recording = (keep: Keep, name: string) => Promise<void>;

/** The life of one Proxy over the fake world. */
export interface RecordedStory {
  /** File name: what happens, in one word. */
  name: string;
  settings?: StorySettings;
  /** Name under which the history of the last run is kept as well, when the story spans several runs. */
  lastRun?: string;
  world?: (world: FakeWorld) => void;
  tell: (story: Story) => Promise<void>;
}
