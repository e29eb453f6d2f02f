/** A seed as cloud-init's own code reads it, in Python (readSeed.py). */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import { findCloudInit } from '../../deploy/dev/cloudInit.ts';

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'));
const part = z.object({ type: z.string(), filename: z.string().nullable(), content: bytes });
const reading = z.object({
  version: z.string(),
  found: z.boolean(),
  instanceId: z.string(),
  hostname: z.string(),
  userData: bytes,
  vendorData: bytes,
  userParts: z.array(part),
  vendorParts: z.array(part),
});
export type SeedReading = z.infer<typeof reading>;
export type SeedPart = z.infer<typeof part>;

const script = fileURLToPath(new URL('readSeed.py', import.meta.url));
const execute = promisify(execFile);

/** What a guest with this image in its drive sets itself up from. Throws what cloud-init complained about. */
export async function readWithCloudInit(image: Uint8Array): Promise<SeedReading> {
  const { python, modules } = await findCloudInit();
  const folder = await mkdtemp(join(tmpdir(), 'cloud-init-'));
  try {
    const path = join(folder, 'seed.iso');
    await writeFile(path, image);
    const env = {
      ...process.env,
      PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin`,
      PYTHONDONTWRITEBYTECODE: '1',
      ...(modules === null ? {} : { PYTHONPATH: modules }),
    };
    const { stdout } = await execute(python, [script, path, folder], {
      env,
      maxBuffer: 128 * 1024 ** 2,
    });
    return reading.parse(JSON.parse(stdout));
  } finally {
    await rm(folder, { recursive: true });
  }
}
