/**
 * Makes the whole operator run on scaledBudgets.ts: in this process (steps, client) and in the workflow bundle. All
 * its times stand in one module, so replacing that one is enough.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { BundleOptions } from '@temporalio/worker';

const original = new URL('../../../workflows/contract/budgets.ts', import.meta.url).href;
const scaled = new URL('./scaledBudgets.ts', import.meta.url).href;

/** Modules imported from now on see the scaled times: call it before the first import of a step. */
export function scaleTime(): void {
  registerHooks({
    resolve: (specifier, context, next) => {
      const found = next(specifier, context);
      return found.url === original ? { ...found, url: scaled } : found;
    },
  });
}

/** The same for the bundle. */
export const scaledBundle: NonNullable<BundleOptions['webpackConfigHook']> = (config) => ({
  ...config,
  plugins: [
    ...(config.plugins ?? []),
    {
      apply: (compiler) => {
        compiler.hooks.normalModuleFactory.tap('scaled times', (factory) => {
          factory.hooks.beforeResolve.tap('scaled times', (request) => {
            if (!request.request.endsWith('/budgets.ts')) return;
            request.request = fileURLToPath(scaled);
          });
        });
      },
    },
  ],
});
