import type { Endpoint } from '../core.ts';
import { accessEndpoints } from './access.ts';
import { agentEndpoints } from './agent.ts';
import { cloneEndpoints } from './clone.ts';
import { clusterEndpoints } from './cluster.ts';
import { haEndpoints } from './ha.ts';
import { lifecycleEndpoints } from './lifecycle.ts';
import { migrateEndpoints } from './migrate.ts';
import { nodeEndpoints } from './nodes.ts';
import { powerEndpoints } from './power.ts';
import { storageEndpoints } from './storage.ts';
import { taskEndpoints } from './tasks.ts';
import { templateEndpoints } from './template.ts';
import { uploadEndpoints } from './upload.ts';
import { volumeEndpoints } from './volume.ts';
import { vmConfigWriteEndpoints } from './vmConfigWrite.ts';
import { vmReadEndpoints } from './vmRead.ts';

/** Everything the API offers; what is not here is 501. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...accessEndpoints,
  ...clusterEndpoints,
  ...nodeEndpoints,
  ...taskEndpoints,
  ...storageEndpoints,
  ...volumeEndpoints,
  ...uploadEndpoints,
  ...vmReadEndpoints,
  ...vmConfigWriteEndpoints,
  ...powerEndpoints,
  ...cloneEndpoints,
  ...lifecycleEndpoints,
  ...templateEndpoints,
  ...agentEndpoints,
  ...migrateEndpoints,
  ...haEndpoints,
];
