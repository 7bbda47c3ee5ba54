import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BackendModule } from '../backend.js';
import { MissingPackageError } from '../errors.js';
import { complaint } from './complaint.js';
import type { Origin } from './config.js';
import { backendModuleIn } from './modules.js';

/**
 * Imports the package that brings a backend: the application's copy, else one that is installed beside core. So it
 * works where a package sees only its own dependencies.
 *
 * @throws MissingPackageError when it is not installed, ConfigError when it is no backend
 */
export async function importBackend(packageName: string, origin: Origin): Promise<BackendModule> {
  const file = locate(packageName, origin);
  let exported: unknown;
  try {
    exported = await import(pathToFileURL(file).href);
  } catch (cause) {
    throw complaint(
      origin,
      '',
      `needs the package ${packageName}, which cannot be loaded from ${file}: ${(cause as Error).message}`,
      cause,
    );
  }
  const module = backendModuleIn(exported);
  if (module !== undefined) return module;
  throw complaint(
    origin,
    '',
    `names the package ${packageName}, which exports no backend (schemes, createBackend)`,
  );
}

function locate(packageName: string, origin: Origin): string {
  let failure: unknown;
  for (const folder of [origin.resolveFrom ?? process.cwd(), fileURLToPath(new URL('.', import.meta.url))]) {
    try {
      return createRequire(join(folder, 'package.json')).resolve(packageName);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
        throw complaint(
          origin,
          '',
          `names the package ${packageName}, whose exports lack a "default" condition`,
          error,
        );
      }
      failure = error;
    }
  }
  throw new MissingPackageError(packageName, `the backend that ${origin.label} names`, { cause: failure });
}
