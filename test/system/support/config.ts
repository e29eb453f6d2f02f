/** The providers config of a stack, changed as an administrator edits it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { SystemStack } from './stack.ts';

const configSchema = z.object({
  providers: z.array(
    z.object({ name: z.string(), type: z.string(), proxmox: z.record(z.string(), z.unknown()) }),
  ),
});
export type EditableConfig = z.infer<typeof configSchema>;

/** For the option `providersConfig` of a stack: the text with `edit` applied. */
export function edited(edit: (config: EditableConfig) => void): (text: string) => string {
  return (text) => {
    const config = configSchema.parse(parse(text));
    edit(config);
    return stringify(config);
  };
}

/** Sets keys of the stack's one provider. */
export function withSettings(settings: Record<string, unknown>): (text: string) => string {
  return edited(({ providers }) => {
    for (const { proxmox } of providers) Object.assign(proxmox, settings);
  });
}

/** Edits the config of a running stack in place. */
export function editConfig(stack: SystemStack, change: (text: string) => string): void {
  const file = stack.providersConfigFile;
  writeFileSync(file, change(readFileSync(file, 'utf8')));
}
