import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { loadProvidersConfig } from '../../api/providersConfig.ts';
import { source } from '../support/pages.ts';

const deployment = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.tuple([
          z.object({
            volumeMounts: z.array(
              z.object({
                name: z.string(),
                mountPath: z.string(),
                readOnly: z.boolean().optional(),
                subPath: z.never().optional(),
              }),
            ),
          }),
        ]),
        volumes: z.array(
          z.object({
            name: z.string(),
            projected: z
              .object({
                sources: z.array(
                  z.object({
                    secret: z
                      .object({
                        name: z.string(),
                        optional: z.boolean().optional(),
                        items: z.array(z.object({ key: z.string(), path: z.string() })),
                      })
                      .optional(),
                  }),
                ),
              })
              .optional(),
          }),
        ),
      }),
    }),
  }),
});

test('the worker has the Secret with token and CA where the samples look for them, read-only, and does without it', () => {
  const [document] = parseAllDocuments(source('deploy/base/worker.yaml'));
  const { containers, volumes } = deployment.parse(document?.toJS()).spec.template.spec;
  const [volume] = volumes.filter(({ projected }) => projected !== undefined);
  const secret = volume?.projected?.sources.find((part) => part.secret !== undefined)?.secret;
  assert.equal(secret?.name, 'proxmox-token');
  // Optional, so a missing Secret keeps no pod from starting, and a missing ca.pem (no verification) neither.
  assert.equal(secret.optional, true);
  const mount = containers[0].volumeMounts.find(({ name }) => name === volume?.name);
  assert.equal(mount?.readOnly, true);
  const pathOf = (wanted: string): string => {
    const item = secret.items.find(({ key }) => key === wanted);
    return `${mount.mountPath}/${item?.path}`;
  };
  for (const sample of [
    'deploy/samples/providers.yaml',
    'deploy/overlays/example/providers.yaml',
  ]) {
    const [provider] = loadProvidersConfig(source(sample), sample).providers;
    assert.equal(provider?.proxmox.tokenFile, pathOf('token'), sample);
    assert.equal(provider.proxmox.caFile, pathOf('ca.pem'), sample);
  }
});
