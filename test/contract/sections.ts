import type { Section } from './statement.ts';
import { clusterSetup } from './statements/clusterSetup.ts';
import { configReference } from './statements/configReference.ts';
import { errorClasses } from './statements/errorClasses.ts';
import { healthCheck } from './statements/healthCheck.ts';
import { introduction } from './statements/introduction.ts';
import { knownGaps } from './statements/knownGaps.ts';
import { landing } from './statements/landing.ts';
import { logging } from './statements/logging.ts';
import { placement } from './statements/placement.ts';
import { prerequisites } from './statements/prerequisites.ts';
import { testing } from './statements/testing.ts';
import { timeouts } from './statements/timeouts.ts';
import { tracing } from './statements/tracing.ts';

/** All sections, in the page's order. */
export const sections: readonly Section[] = [
  introduction,
  prerequisites,
  clusterSetup,
  configReference,
  placement,
  landing,
  logging,
  tracing,
  timeouts,
  healthCheck,
  errorClasses,
  knownGaps,
  testing,
];
